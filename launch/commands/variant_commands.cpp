#include <filesystem>
#include <iostream>

#include "launch/commands/commands.hpp"
#include "launch/commands/import_module.hpp"
#include "launch/files.hpp"
#include "launch/importing.hpp"
#include "launch/slow_notice.hpp"
#include "results/printing.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

struct translation_arguments {
  std::vector<std::string> files;
  std::string task;
  std::string out = ".";
  import_options importing;
  bool replaces = false;
  bool json = false;
};

void print(const translation_arguments& a, const std::string& file, const fs::path& document,
           const import_worker::translated_program& found) {
  if (a.json) {
    nlohmann::ordered_json line = {{"file", file}, {"translated", found.error.empty()}};
    if (found.error.empty()) {
      line["path"] = document.string();
      line["notes"] = found.notes;
    } else {
      line["error"] = found.error;
    }
    std::cout << one_line(line) << std::endl;
    return;
  }
  std::cout << file << ": ";
  if (!found.error.empty()) {
    std::cout << "not translated: " << found.error;
  } else {
    std::cout << "translated as " << document.string();
    for (const std::string& note : found.notes) std::cout << "; " << note;
  }
  std::cout << std::endl;
}

int translate_files(const translation_arguments& a) {
  const task t = load_task(find_task_file(a.task));
  fs::create_directories(a.out);
  std::vector<fs::path> folders;
  for (const std::string& file : a.files) folders.push_back(fs::absolute(file).parent_path());
  program_translator translator(a.importing, folders);
  bool all_translated = true;
  for (const std::string& file : a.files) {
    const slow_notice notice([&] { return "translating " + file; });
    const fs::path document = fs::path(a.out) / (fs::path(file).stem().string() + ".md");
    const auto found = translator.translate(file, t, fs::path(file).filename());
    if (found.error.empty()) {
      if (!a.replaces) require_no_other(document, found.document);
      write_text(document, found.document);
    }
    all_translated = all_translated && found.error.empty();
    print(a, file, document, found);
  }
  return all_translated ? 0 : 1;
}

}  // namespace

void add_variant_commands(CLI::App& app, command_action& action) {
  CLI::App* variant = app.add_subcommand("variant", "Work with variant documents");
  variant->require_subcommand(1);
  auto arguments = std::make_shared<translation_arguments>();
  CLI::App* command = variant->add_subcommand("import",
                                              "Turn files with a ModelNew that consists of "
                                              "PyTorch's operators into variant documents; exit "
                                              "code 0 only if all were translated");
  command->add_option("file", arguments->files, "Python files with a class ModelNew")->required();
  command
      ->add_option("--task", arguments->task,
                   "the task file, made by `hone task import` of the Model that they replace, or "
                   "the name of one under configs/tasks")
      ->required();
  command->add_option("--out", arguments->out, "folder to which the documents are written")
      ->capture_default_str();
  add_import_limits(*command, arguments->importing);
  command->add_flag("--force", arguments->replaces,
                    "replace documents that are there already and differ");
  command->add_flag("--json", arguments->json, "print one JSON object per file");
  command->callback(
      [arguments, &action] { action = [arguments] { return translate_files(*arguments); }; });
}

}  // namespace hone
