#pragma once

#include <condition_variable>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "launch/serve/judge_request.hpp"
#include "tasks/task_table.hpp"

namespace hone {

// The tasks that a server judges programs for: its own, and late ones that clients hand in. All
// functions may be called by several threads.
class served_tasks {
 public:
  using found_task = std::shared_ptr<const task>;
  // What became of a late task. It has to be stored before keep() lets others find it.
  struct late_task {
    found_task made;
    std::vector<std::string> notes;  // of the import
  };
  // Called once, on any thread: with the task, or with why there is none.
  using taker = std::function<void(const late_task&, const bad_request*)>;

  // `importers`: processes that import and translate.
  served_tasks(std::shared_ptr<const task_table> own, const std::vector<task_record>& late,
               std::size_t max_late, std::size_t importers);
  ~served_tasks();

  // Returns null if there is no task with this name or id. Of a name, the server's own task counts,
  // or else the first.
  found_task find(const std::string& name_or_id) const;
  // Returns that task or else the first whose name has this text; any task for an empty text.
  found_task find_like(const std::string& text) const;
  // Makes the task of a task file or a module, which takes seconds unless it is known, and passes
  // it on. Refuses tasks that are too large or unreadable, and more work at a time than allowed.
  void make(const task_reference& reference, const taker& take);
  // Translates the programs in Python of a request for a task, which takes seconds each unless they
  // are known, and passes the programs on. Called once, on any thread.
  using translated_taker =
      std::function<void(const std::vector<asked_program>&, const bad_request*)>;
  void translate(const found_task& for_task, std::vector<asked_program> programs,
                 const translated_taker& take);
  // Lets a late task be found from now on.
  void keep(const found_task& late);
  // Returns up to `most` tasks whose names are above `after`, by name.
  std::vector<found_task> list(const std::string& after, std::size_t most) const;

 private:
  // Work for an importer, which has its own processes and folder. May throw.
  struct importer;
  using job = std::function<void(importer&)>;
  // Has an importer do it. Throws bad_request if too much waits.
  void enqueue(job work);
  void work_off_jobs();
  void import(importer& with, const task_reference& module, const std::string& key,
              const taker& take);
  std::optional<late_task> find_imported(const std::string& key) const;
  void translate_one(importer& with, const task& for_task, asked_program& program);
  // Returns the task if it may be kept. Throws bad_request.
  found_task accept(task made) const;

  std::shared_ptr<const task_table> own_;
  const std::size_t max_late_;
  mutable std::mutex lock_;  // guards what follows
  std::condition_variable has_work_;
  std::map<std::string, found_task, std::less<>> late_;  // by name
  std::map<task_id, found_task> late_by_id_;
  std::map<std::string, late_task> imported_;        // by what was imported
  std::map<std::string, asked_program> translated_;  // by task and text
  std::deque<job> jobs_;
  bool is_ending_ = false;
  std::vector<std::thread> importers_;
};

}  // namespace hone
