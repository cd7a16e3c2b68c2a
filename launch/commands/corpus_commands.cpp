#include <iostream>
#include <nlohmann/json.hpp>

#include "launch/commands/commands.hpp"
#include "launch/files.hpp"
#include "launch/printing.hpp"
#include "tasks/corpus.hpp"

namespace hone {
namespace {

struct expand_options {
  std::vector<std::string> files;
  std::string out;
  bool json = false;
};

int expand(const expand_options& options) {
  for (const std::string& file : options.files) {
    for (const corpus_document& document : expand_corpus_file(file)) {
      if (options.json) {
        std::cout << one_line(nlohmann::ordered_json{
                         {"task", document.task}, {"name", document.name}, {"text", document.text}})
                  << "\n";
      } else if (!options.out.empty()) {
        std::string name = document.name;
        std::replace(name.begin(), name.end(), ' ', '-');
        const auto path = std::filesystem::path(options.out) / document.task / (name + ".md");
        std::filesystem::create_directories(path.parent_path());
        write_text(path, document.text);
        std::cout << path.string() << "\n";
      } else {
        std::cout << "<!-- " << document.task << ": " << document.name << " -->\n"
                  << document.text << "\n";
      }
    }
  }
  return 0;
}

}  // namespace

void add_corpus_commands(CLI::App& app, command_action& action) {
  CLI::App* corpus = app.add_subcommand("corpus", "Work with corpus files");
  corpus->require_subcommand(1);
  auto options = std::make_shared<expand_options>();
  CLI::App* command = corpus->add_subcommand(
      "expand",
      "Print or write the documents that corpus files and their sweeps stand for. A file with a "
      "sweep begins with a line such as `sweep: BLOCK = 64 128, ITEMS = 1 2`; it stands for a "
      "document per combination, with the values in place of ${BLOCK} and ${ITEMS}");
  command->add_option("file", options->files, "corpus files")->required();
  auto* folder = command->add_option(
      "--out", options->out, "write the documents to this folder, with one subfolder per task");
  command->add_flag("--json", options->json, "print one JSON object per document")
      ->excludes(folder);
  command->callback([options, &action] { action = [options] { return expand(*options); }; });
}

}  // namespace hone
