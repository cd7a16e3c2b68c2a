#include <re2/re2.h>

#include <algorithm>
#include <condition_variable>
#include <iostream>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "launch/commands/commands.hpp"
#include "launch/commands/import_module.hpp"
#include "launch/files.hpp"
#include "launch/importing.hpp"
#include "launch/slow_notice.hpp"
#include "process/temporary_folder.hpp"
#include "results/printing.hpp"

namespace hone {
namespace {

struct import_arguments {
  std::vector<std::string> paths;
  std::string out = "imported";
  import_options importing;
  bool replaces = false;
  bool json = false;
};

struct import_job {
  std::filesystem::path file;
  std::string task_name;
  std::string clash;  // an earlier file whose task has this name; empty if there is none
};

// Returns the name of a file's task: 12_some_name for "12_Some-Name.py", and level1_12_some_name
// for the same file in a folder level1.
std::string task_name_of(const std::filesystem::path& file) {
  std::string name;
  const std::string folder = std::filesystem::absolute(file).parent_path().filename();
  static const RE2 level("(?i)level[0-9]+");
  for (const char c : (RE2::FullMatch(folder, level) ? folder + "_" : "") + file.stem().string()) {
    const auto letter = static_cast<unsigned char>(c);
    if (std::isalnum(letter) != 0 && letter < 0x80) {
      name += static_cast<char>(std::tolower(letter));
    } else if (!name.empty() && !name.ends_with('_')) {
      name += '_';
    }
  }
  while (name.ends_with('_')) name.pop_back();
  return name.empty() ? "imported" : name;
}

// Returns a key that sorts numbers in names by value: 2_ comes before 10_.
std::string sorting_key(const std::filesystem::path& file) {
  std::string key;
  std::string digits;
  for (const char c : file.string() + "\n") {
    if (std::isdigit(static_cast<unsigned char>(c)) != 0) {
      digits += c;
      continue;
    }
    if (!digits.empty())
      key += std::string(digits.size() < 12 ? 12 - digits.size() : 0, '0') + digits;
    digits.clear();
    key += c;
  }
  return key;
}

std::vector<import_job> find_modules(const std::vector<std::string>& paths) {
  std::vector<std::filesystem::path> files;
  for (const std::string& given : paths) {
    if (!std::filesystem::is_directory(given)) {
      if (!std::filesystem::is_regular_file(given))
        throw std::runtime_error(given + ": there is no such file or folder");
      files.emplace_back(given);
      continue;
    }
    const std::size_t before = files.size();
    for (const auto& entry : std::filesystem::recursive_directory_iterator(given)) {
      const std::string name = entry.path().filename();
      if (entry.is_regular_file() && name.ends_with(".py") && !name.starts_with('_') &&
          !name.starts_with('.'))
        files.push_back(entry.path());
    }
    if (files.size() == before) throw std::runtime_error(given + ": contains no Python file");
    std::sort(files.begin() + static_cast<std::ptrdiff_t>(before), files.end(),
              [](const auto& a, const auto& b) { return sorting_key(a) < sorting_key(b); });
  }
  std::vector<import_job> jobs;
  std::map<std::string, std::string> taken;
  for (const auto& file : files) {
    import_job job{file, task_name_of(file), ""};
    const auto [at, is_new] = taken.emplace(job.task_name, file.string());
    if (!is_new) job.clash = at->second;
    jobs.push_back(std::move(job));
  }
  return jobs;
}

struct import_result {
  imported_module module;
  std::optional<task> made;
};

// Imports one module. Writes the task only if Hone's own parser accepts it and all operators that
// its reference calls are allowed. `replaces`: files that differ.
import_result import_one(import_worker& worker, const import_job& job,
                         const std::filesystem::path& out, bool replaces = false) {
  import_result result;
  if (!job.clash.empty()) {
    result.module.error = "the task name " + job.task_name + " is already taken by " + job.clash;
    return result;
  }
  result.module = worker.import(job.file, job.task_name);
  if (!result.module.error.empty()) return result;
  try {
    task made = task_of(result.module, job.task_name);
    const auto& data = made.data_files;
    const std::filesystem::path task_file = out / (job.task_name + ".toml");
    if (!replaces) {
      require_no_other(task_file, result.module.text);
      if (!data.empty()) require_no_other(out / data.front().name(), data.front().bytes());
    }
    if (!data.empty()) write_text(out / data.front().name(), data.front().bytes());
    write_text(task_file, result.module.text);
    result.made = std::move(made);
  } catch (const std::runtime_error& e) {
    result.module.error = e.what();
  }
  return result;
}

void print_result(const import_job& job, const import_result& result,
                  const std::filesystem::path& out, bool as_json) {
  const imported_module& module = result.module;
  if (as_json) {
    nlohmann::ordered_json line = {
        {"file", job.file.string()}, {"imported", module.error.empty()}, {"task", job.task_name}};
    if (module.error.empty()) {
      line["path"] = (out / (job.task_name + ".toml")).string();
      line["inputs"] = result.made->inputs.size();
      line["parameters"] = result.made->parameters.size();
      line["cases"] = result.made->cases.size();
      line["checked"] = module.checked;
      line["notes"] = module.notes;
    } else {
      line["error"] = module.error;
    }
    std::cout << one_line(line) << std::endl;
    return;
  }
  std::cout << job.file.string() << ": ";
  if (!module.error.empty()) {
    std::cout << "not imported: " << module.error;
  } else {
    std::cout << "imported as " << (out / (job.task_name + ".toml")).string() << ", "
              << counted(result.made->cases.size(), "case");
    for (const std::string& note : module.notes) std::cout << "; " << note;
  }
  std::cout << std::endl;
}

// Returns the folders of the files: a module may import other files from its folder.
std::vector<std::filesystem::path> folders_of(const std::vector<import_job>& jobs) {
  std::set<std::filesystem::path> folders;
  for (const import_job& job : jobs)
    folders.insert(std::filesystem::absolute(job.file).parent_path());
  return {folders.begin(), folders.end()};
}

int import_modules(const import_arguments& options) {
  const auto jobs = find_modules(options.paths);
  const std::filesystem::path out = options.out;
  std::filesystem::create_directories(out);
  const temporary_folder scratch("import");
  const import_worker::settings settings =
      worker_settings(options.importing, scratch.path(), folders_of(jobs));

  std::mutex lock;
  std::vector<std::optional<import_result>> results(jobs.size());
  std::size_t next = 0;
  std::size_t printed = 0;
  std::exception_ptr broken;
  const auto work = [&] {
    import_worker worker(settings);
    for (;;) {
      std::unique_lock held(lock);
      if (next == jobs.size() || broken) return;
      const std::size_t mine = next++;
      held.unlock();
      try {
        import_result result = import_one(worker, jobs[mine], out, options.replaces);
        held.lock();
        results[mine] = std::move(result);
      } catch (...) {
        held.lock();
        broken = std::current_exception();
        return;
      }
      for (; printed < jobs.size() && results[printed]; ++printed)
        print_result(jobs[printed], *results[printed], out, options.json);
    }
  };
  const std::size_t workers =
      std::min<std::size_t>({2, jobs.size(), std::max(1U, std::thread::hardware_concurrency())});
  {
    const slow_notice notice([&] {
      const std::lock_guard hold(lock);
      const std::size_t at = std::min(printed, jobs.size() - 1);
      return "importing " + jobs[at].file.string() + ", " + std::to_string(printed) + " of " +
             std::to_string(jobs.size()) + " done";
    });
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < workers; ++i) threads.emplace_back(work);
  }
  if (broken) std::rethrow_exception(broken);
  const auto failed = std::count_if(results.begin(), results.end(),
                                    [](const auto& r) { return !r->module.error.empty(); });
  if (!options.json && jobs.size() > 1)
    std::cout << jobs.size() - static_cast<std::size_t>(failed) << " of " << jobs.size()
              << " imported into " << out.string() << "\n";
  return failed == 0 ? 0 : 1;
}

}  // namespace

task import_module(const std::filesystem::path& file, const std::filesystem::path& out) {
  const auto jobs = find_modules({file.string()});
  if (jobs.size() != 1) throw std::runtime_error(file.string() + ": is not one Python file");
  const temporary_folder scratch("import");
  import_worker worker(worker_settings({}, scratch.path(), folders_of(jobs)));
  const slow_notice notice([&] { return "importing " + file.string(); });
  import_result result = import_one(worker, jobs.front(), out);
  if (!result.made) throw std::runtime_error(file.string() + ": " + result.module.error);
  for (const std::string& note : result.module.notes) std::cout << note << "\n";
  return *std::move(result.made);
}

void add_import_limits(CLI::App& command, import_options& options) {
  command.add_option("--seconds", options.seconds, "limit on processor time per file, in seconds")
      ->capture_default_str()
      ->check(CLI::Range(1, 3600));
  command.add_option("--megabytes", options.megabytes, "limit on memory per file, in MiB")
      ->capture_default_str()
      ->check(CLI::Range(64, 1 << 20));
}

void require_no_other(const std::filesystem::path& file, std::string_view bytes) {
  if (std::filesystem::exists(file) && read_text(file.string()) != bytes)
    throw std::runtime_error(file.string() + ": is there already and differs; --force replaces it");
}

void add_import_command(CLI::App& tasks, command_action& action) {
  auto options = std::make_shared<import_arguments>();
  import_options& importing = options->importing;
  CLI::App* command = tasks.add_subcommand(
      "import", "Turn PyTorch modules into task files; exit code 0 only if all were imported");
  command
      ->add_option(
          "path", options->paths,
          "Python files with Model, get_inputs() and get_init_inputs(), or folders of them")
      ->required();
  command->add_option("--out", options->out, "folder to which task files are written")
      ->capture_default_str();
  add_import_limits(*command, importing);
  command->add_flag("--vary-constants", importing.varies_constants,
                    "draw parameters that a file sets to one value near that value, so that a "
                    "variant cannot leave them out");
  command
      ->add_option("--precision", importing.precision,
                   "strict, or relaxed: tasks admit TF32, and their tolerances are wider")
      ->capture_default_str()
      ->check(CLI::IsMember({"strict", "relaxed"}));
  command
      ->add_option("--dtype", importing.dtype,
                   "cast floating-point parameters and inputs to bfloat16 or float16")
      ->check(CLI::IsMember({"bfloat16", "float16"}));
  command->add_flag("--fixed-sizes", importing.fixes_sizes,
                    "give tasks the file's sizes and no others, for programs that are written for "
                    "these alone; by default they are checked at odd sizes, too");
  command->add_flag("--force", options->replaces,
                    "replace task files that are there already and differ");
  command->add_flag("--json", options->json, "print one JSON object per file");
  command->callback(
      [options, &action] { action = [options] { return import_modules(*options); }; });
}

}  // namespace hone
