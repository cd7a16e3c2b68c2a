#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "launch/commands/commands.hpp"
#include "launch/files.hpp"
#include "launch/teaching.hpp"
#include "messages/names.hpp"
#include "results/printing.hpp"
#include "results/variants.hpp"
#include "storage/inspection.hpp"
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

struct teach_options {
  std::vector<std::string> tasks;
  std::string out;
  std::string device = "cuda";
  std::uint32_t count = 8;
  std::uint64_t seed = 1;
};

int teach_tasks(const teach_options& options) {
  teacher by(find_teacher(options.seed));
  std::size_t documents = 0;
  std::size_t tasks = 0;
  for (const std::string& named : options.tasks) {
    for (const auto& file : find_task_files(named)) {
      const task t = load_task(file);
      const auto folder = std::filesystem::path(options.out) / t.name;
      std::filesystem::create_directories(folder);
      const auto written = teach(by, t, options.device, 0, options.count);
      for (const corpus_document& document : written)
        write_text(folder / (document.name + ".md"), document.text);
      documents += written.size();
      ++tasks;
      std::cout << t.name << ": " << counted(written.size(), "document") << std::endl;
    }
  }
  std::cout << counted(documents, "document") << " of " << counted(tasks, "task") << " in "
            << options.out << "\n";
  return 0;
}

struct collect_options {
  std::string pool;
  std::string out;
  std::string device_type;
  std::size_t count = 8;
};

int collect(const collect_options& options) {
  const pool_inspector pool(find_pool(options.pool));
  std::set<std::string> tasks;
  std::set<variant_id> taken;
  std::size_t gone = 0;
  for (const auto& e : pool.top(options.count)) {
    if (!options.device_type.empty() && view(e->getDeviceType()) != options.device_type) continue;
    const variant_id id(e->getVariantId());
    const auto task = pool.task_name(task_id(e->getTaskId()));
    if (!task || !taken.insert(id).second) continue;
    const auto document = document_of(pool, id);
    if (!document) {
      ++gone;
      continue;
    }
    const auto folder = std::filesystem::path(options.out) / *task;
    std::filesystem::create_directories(folder);
    write_text(folder / (short_id(id) + ".md"), *document);
    tasks.insert(*task);
  }
  std::cout << counted(taken.size() - gone, "document") << " of " << counted(tasks.size(), "task")
            << " in " << options.out << "\n";
  if (gone > 0)
    std::cout << counted(gone, "document") << " are no longer in the pool (pool.keep_texts)\n";
  return 0;
}

void add_collect_command(CLI::App& corpus, command_action& action) {
  auto options = std::make_shared<collect_options>();
  CLI::App* command = corpus.add_subcommand(
      "collect",
      "Make a corpus of the best documents in a pool, such as those that a run with models behind "
      "endpoints has found, for another run to learn from");
  command->add_option("--pool", options->pool, "a run's directory, or the folder pool/ in it")
      ->required();
  command->add_option("--out", options->out, "folder for TASK/VARIANT.md")->required();
  command->add_option("--count", options->count, "most documents per task and type of device")
      ->capture_default_str()
      ->check(CLI::Range(1, 100000));
  command->add_option("--device-type", options->device_type, "only what is best on this type");
  command->callback([options, &action] { action = [options] { return collect(*options); }; });
}

void add_teach_command(CLI::App& corpus, command_action& action) {
  auto options = std::make_shared<teach_options>();
  CLI::App* command = corpus.add_subcommand(
      "teach",
      "Have the teacher write variants of tasks by rules: kernels that fuse what is element-wise "
      "or "
      "a reduction, around ATen's products and convolutions. `hone bench` judges them");
  command->add_option("task", options->tasks, "task files, folders of them, or names of tasks")
      ->required();
  command->add_option("--out", options->out, "folder for TASK/teacher-N.md")->required();
  command->add_option("--count", options->count, "variants per task, less repetitions")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  command->add_option("--seed", options->seed, "of the random moves")->capture_default_str();
  command->add_option("--device", options->device, "kind of device to write for")
      ->capture_default_str()
      ->check(CLI::IsMember({"cuda", "cpu"}));
  command->callback([options, &action] { action = [options] { return teach_tasks(*options); }; });
}

}  // namespace

void add_corpus_commands(CLI::App& app, command_action& action) {
  CLI::App* corpus = app.add_subcommand("corpus", "Work with corpus files");
  corpus->require_subcommand(1);
  add_teach_command(*corpus, action);
  add_collect_command(*corpus, action);
  auto options = std::make_shared<expand_options>();
  CLI::App* command = corpus->add_subcommand(
      "expand",
      "Print or write the documents that corpus files and their sweeps stand for. A file with a "
      "sweep begins with a line such as `sweep: BLOCK = 64 128, ITEMS = 1 2`; it expands to a "
      "document per combination, with the values of ${BLOCK} and ${ITEMS}");
  command->add_option("file", options->files, "corpus files")->required();
  auto* folder = command->add_option(
      "--out", options->out, "write the documents to this folder, with one subfolder per task");
  command->add_flag("--json", options->json, "print one JSON object per document")
      ->excludes(folder);
  command->callback([options, &action] { action = [options] { return expand(*options); }; });
}

}  // namespace hone
