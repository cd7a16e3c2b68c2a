#include "actors/log_syncer.hpp"

#include <caf/all.hpp>

#include <exception>
#include <utility>

#include "messages/interfaces.hpp"

namespace hone {

std::string open_log::sync() {
  const std::lock_guard lock(mutex_);
  if (of_ == nullptr) return {};
  try {
    of_->sync();
    return {};
  } catch (const std::exception& e) {
    return e.what();
  }
}

void open_log::close() {
  const std::lock_guard lock(mutex_);
  of_ = nullptr;
}

caf::behavior log_syncer_behavior(caf::event_based_actor* /*self*/, std::shared_ptr<open_log> log) {
  return {[log = std::move(log)](flush_atom) { return log->sync(); }};
}

}  // namespace hone
