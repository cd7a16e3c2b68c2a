#include "policy/work_progress.hpp"

#include <map>
#include <mutex>

namespace hone {
namespace {

thread_local progress_counter* of_this_thread = nullptr;

}  // namespace

progress_counter& progress_on(const std::string& device) {
  static std::mutex guard;
  static std::map<std::string, progress_counter> counters;
  const std::scoped_lock lock(guard);
  return counters[device];
}

counted_work::counted_work(const std::string& device) : before_(of_this_thread) {
  of_this_thread = &progress_on(device);
}

counted_work::~counted_work() { of_this_thread = before_; }

progress_counter& progress_of_process() {
  static progress_counter counter;
  return counter;
}

void note_progress() {
  ++progress_of_process();
  if (of_this_thread != nullptr) ++*of_this_thread;
}

}  // namespace hone
