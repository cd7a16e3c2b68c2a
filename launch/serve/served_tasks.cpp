#include "launch/serve/served_tasks.hpp"

#include <algorithm>
#include <utility>

#include "launch/files.hpp"
#include "launch/importing.hpp"
#include "process/temporary_folder.hpp"

namespace hone {
namespace {

constexpr std::size_t max_task_bytes = std::size_t{1} << 20U;  // it travels with each of its jobs
constexpr std::size_t max_waiting_jobs = 256;
constexpr std::size_t max_remembered = 4096;
constexpr int seconds_of_import = 60;  // of processor time that a client may take for one file

std::string key_of(const task_reference& module) {
  return to_string(content_id<task_id>({"module", module.module, module.precision, module.dtype,
                                        module.varies_constants ? "varied" : "",
                                        module.fixes_sizes ? "fixed" : ""}));
}

std::string key_of(const task& t, const asked_program& program) {
  return to_string(content_id<task_id>({"translation", to_string(t.id), program.text}));
}

bad_request unusable(const std::string& why) { return {422, "bad_task", why}; }

// Keeps a value under a key, among not too many others.
template <class Map, class Value>
void remember(Map& known, const std::string& key, const Value& value) {
  if (known.size() >= max_remembered) known.clear();
  known.emplace(key, value);
}

import_options limited() {
  import_options options;
  options.seconds = seconds_of_import;
  return options;
}

}  // namespace

struct served_tasks::importer {
  const temporary_folder scratch{"serve"};
  std::map<std::string, std::unique_ptr<import_worker>> workers{};  // by their settings
  program_translator translator{limited(), {scratch.path()}};

  import_worker& worker_for(const task_reference& module) {
    auto& worker =
        workers[module.precision + module.dtype + (module.varies_constants ? "varied" : "") +
                (module.fixes_sizes ? "fixed" : "")];
    if (worker == nullptr) {
      import_options options = limited();
      options.precision = module.precision;
      options.dtype = module.dtype;
      options.varies_constants = module.varies_constants;
      options.fixes_sizes = module.fixes_sizes;
      worker = std::make_unique<import_worker>(worker_settings(options, scratch.path(), {}));
    }
    return *worker;
  }
  // Calls `use` with a file of this text.
  template <class Use>
  auto with_file(const std::string& name, const std::string& text, const Use& use) const {
    const std::filesystem::path file = std::filesystem::path(scratch.path()) / (name + ".py");
    write_text(file, text);
    auto result = use(file);
    std::filesystem::remove(file);
    return result;
  }
};

served_tasks::served_tasks(std::shared_ptr<const task_table> own,
                           const std::vector<task_record>& late, std::size_t max_late,
                           std::size_t importers)
    : own_(std::move(own)), max_late_(max_late) {
  for (const task_record& one : late) keep(std::make_shared<const task>(from_record(*one)));
  for (std::size_t i = 0; i < importers; ++i) importers_.emplace_back([this] { work_off_jobs(); });
}

served_tasks::~served_tasks() {
  {
    const std::lock_guard hold(lock_);
    is_ending_ = true;
  }
  has_work_.notify_all();
  for (std::thread& one : importers_) one.join();
}

served_tasks::found_task served_tasks::find(const std::string& name_or_id) const {
  if (auto known = own_->find(std::string_view(name_or_id))) return known;
  const auto parsed = parse_hex_id(name_or_id);
  const std::lock_guard hold(lock_);
  const auto named = late_.find(name_or_id);
  if (named != late_.end()) return named->second;
  if (!parsed) return nullptr;
  const task_id id((*parsed)[0], (*parsed)[1]);
  if (auto known = own_->find(id)) return known;
  const auto late = late_by_id_.find(id);
  return late == late_by_id_.end() ? nullptr : late->second;
}

served_tasks::found_task served_tasks::find_like(const std::string& text) const {
  if (auto known = find(text)) return known;
  const std::vector<found_task> all = list("", own_->all().size() + max_late_);
  if (text.empty() && !all.empty()) return all[random_bits() % all.size()];
  const auto found = std::find_if(all.begin(), all.end(), [&](const found_task& one) {
    return one->name.find(text) != std::string::npos;
  });
  return found == all.end() ? nullptr : *found;
}

void served_tasks::keep(const found_task& late) {
  const std::lock_guard hold(lock_);
  if (own_->find(late->id) != nullptr) return;
  late_by_id_.emplace(late->id, late);
  late_.emplace(late->name, late);
}

std::vector<served_tasks::found_task> served_tasks::list(const std::string& after,
                                                         std::size_t most) const {
  std::map<std::string_view, found_task> named;
  for (const auto& one : own_->all()) {
    if (one->name > after) named.emplace(one->name, one);
  }
  const std::lock_guard hold(lock_);
  for (auto at = late_.upper_bound(after); at != late_.end(); ++at)
    named.emplace(at->second->name, at->second);
  std::vector<found_task> listed;
  for (const auto& [name, one] : named) {
    if (listed.size() == most) break;
    listed.push_back(one);
  }
  return listed;
}

served_tasks::found_task served_tasks::accept(task made) const {
  std::size_t bytes = made.text.size();
  for (const data_file& data : made.data_files) bytes += data.bytes().size();
  if (bytes > max_task_bytes)
    throw unusable("a task of a client may have " + std::to_string(max_task_bytes) +
                   " bytes with its data, and this one has " + std::to_string(bytes) +
                   "; give the server such tasks in its folder");
  if (!made.has_result)
    throw unusable(
        "the task's outputs say nothing of its inputs (has_result = false), so any "
        "program would be right");
  const std::lock_guard hold(lock_);
  if (late_by_id_.size() >= max_late_ && !late_by_id_.contains(made.id))
    throw bad_request(429, "too_many_tasks",
                      "the server has " + std::to_string(max_late_) +
                          " tasks of clients, which is its limit (serve.max_tasks)");
  return std::make_shared<const task>(std::move(made));
}

std::optional<served_tasks::late_task> served_tasks::find_imported(const std::string& key) const {
  const std::lock_guard hold(lock_);
  const auto known = imported_.find(key);
  return known == imported_.end() ? std::nullopt : std::optional(known->second);
}

void served_tasks::make(const task_reference& reference, const taker& take) {
  try {
    if (!reference.toml.empty())
      return take({accept(parse_task(reference.toml, "the task")), {}}, nullptr);
    const std::string key = key_of(reference);
    if (const auto known = find_imported(key)) return take(*known, nullptr);
    enqueue([this, reference, key, take](importer& with) {
      try {
        import(with, reference, key, take);
      } catch (const bad_request& refused) {
        take({}, &refused);
      } catch (const std::exception& e) {
        const bad_request refused = unusable(e.what());
        take({}, &refused);
      }
    });
  } catch (const bad_request& refused) {
    take({}, &refused);
  } catch (const std::exception& e) {
    const bad_request refused = unusable(e.what());
    take({}, &refused);
  }
}

void served_tasks::enqueue(job work) {
  const std::lock_guard hold(lock_);
  if (jobs_.size() >= max_waiting_jobs)
    throw bad_request(429, "busy", "too many modules wait to be imported or translated");
  jobs_.push_back(std::move(work));
  has_work_.notify_one();
}

void served_tasks::work_off_jobs() {
  importer mine;
  for (;;) {
    std::unique_lock hold(lock_);
    has_work_.wait(hold, [this] { return is_ending_ || !jobs_.empty(); });
    if (is_ending_) return;
    const job work = std::move(jobs_.front());
    jobs_.pop_front();
    hold.unlock();
    work(mine);
  }
}

void served_tasks::import(importer& with, const task_reference& module, const std::string& key,
                          const taker& take) {
  if (const auto known = find_imported(key)) return take(*known, nullptr);
  const std::string name = "module_" + key.substr(0, 12);
  const imported_module found =
      with.with_file(name, module.module, [&](const std::filesystem::path& file) {
        return with.worker_for(module).import(file, name);
      });
  if (!found.error.empty()) throw unusable("the module cannot be imported: " + found.error);
  const late_task made{accept(task_of(found, name)), found.notes};
  {
    const std::lock_guard hold(lock_);
    remember(imported_, key, made);
  }
  take(made, nullptr);
}

void served_tasks::translate(const found_task& for_task, std::vector<asked_program> programs,
                             const translated_taker& take) {
  const bool has_python = std::any_of(programs.begin(), programs.end(),
                                      [](const asked_program& one) { return one.is_python; });
  if (!has_python) return take(programs, nullptr);
  try {
    enqueue([this, for_task, programs = std::move(programs), take](importer& with) mutable {
      try {
        for (asked_program& one : programs) {
          if (one.is_python) translate_one(with, *for_task, one);
        }
        take(programs, nullptr);
      } catch (const std::exception& e) {
        const bad_request refused(503, "unavailable", e.what());
        take({}, &refused);
      }
    });
  } catch (const bad_request& refused) {
    take({}, &refused);
  }
}

void served_tasks::translate_one(importer& with, const task& for_task, asked_program& program) {
  const std::string key = key_of(for_task, program);
  {
    const std::lock_guard hold(lock_);
    if (const auto known = translated_.find(key); known != translated_.end()) {
      program = known->second;
      return;
    }
  }
  import_worker::translated_program found;
  try {
    found = with.with_file("program", program.text, [&](const std::filesystem::path& file) {
      return with.translator.translate(file, for_task, "a program");
    });
  } catch (const std::runtime_error& e) {  // of the task
    found.error = e.what();
  }
  program.document = found.document;
  program.problem = found.error;
  program.is_unsupported = !found.is_unreadable;
  const std::lock_guard hold(lock_);
  remember(translated_, key, program);
}

}  // namespace hone
