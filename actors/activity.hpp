#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "messages/caf_records.hpp"
#include "messages/clock.hpp"

namespace hone {

// Records the activity of one actor: counts, busy seconds, and spans for the trace. report()
// returns them for telemetry. Belongs to one actor and is used on its thread only. `room` is the
// kind of actor by which reports are summed.
class activity {
 public:
  activity(std::string name, std::string room)
      : name_(std::move(name)), room_(std::move(room)), born_(clock::now()), born_us_(unix_us()) {}

  // A span of kind `work` counts as busy time.
  enum class kind { work, waiting };
  // Records the time from its construction to its destruction as a span of the trace. `name` must
  // live until the next report.
  class span {
   public:
    span(activity& of, const char* name, kind k = kind::work)
        : of_(&of), name_(name), kind_(k), begin_(clock::now()), begin_us_(unix_us()) {}
    ~span() {
      of_->end(name_, kind_, begin_us_,
               std::chrono::duration_cast<std::chrono::nanoseconds>(clock::now() - begin_).count());
    }
    span(const span&) = delete;
    span& operator=(const span&) = delete;

   private:
    activity* of_;
    const char* name_;
    kind kind_;
    std::chrono::steady_clock::time_point begin_;
    std::uint64_t begin_us_;
  };

  void processed(std::uint64_t n = 1) { processed_ += n; }
  void failed() { ++failed_; }
  // Returns the total duration of the spans of kind `waiting`.
  double waited_seconds() const { return static_cast<double>(waited_ns_) / 1e9; }
  // Adds work that another actor did for this one, such as a device for its verifier.
  void add_busy_ms(double ms) { busy_ns_ += static_cast<std::int64_t>(ms * 1e6); }
  void set_number(const std::string& name, double value) { numbers_[name] = value; }
  // Says what type of device the actor works for, so that reports can be summed by it.
  void set_device_type(std::string type) { device_type_ = std::move(type); }

  // Returns the counts since the start and the spans since the last report.
  actor_status_record report(std::size_t queued = 0, std::size_t in_flight = 0) {
    record_builder<schema::ActorStatus> status;
    status->setName(name_);
    status->setRoom(room_);
    status->setDeviceType(device_type_);
    status->setQueued(static_cast<std::uint32_t>(queued));
    status->setInFlight(static_cast<std::uint32_t>(in_flight));
    status->setProcessed(processed_);
    status->setFailed(failed_);
    status->setBusySeconds(static_cast<double>(busy_ns_) / 1e9);
    status->setAliveSeconds(std::chrono::duration<double>(clock::now() - born_).count());
    status->setStartedUs(born_us_);
    auto numbers = status->initNumbers(static_cast<unsigned>(numbers_.size()));
    unsigned i = 0;
    for (const auto& [name, value] : numbers_) {
      numbers[i].setName(name);
      numbers[i++].setValue(value);
    }
    auto spans = status->initSpans(static_cast<unsigned>(spans_.size()));
    for (unsigned s = 0; s < spans.size(); ++s) {
      spans[s].setName(spans_[s].name);
      spans[s].setStartUs(spans_[s].start_us);
      spans[s].setDurationUs(spans_[s].duration_us);
    }
    spans_.clear();
    return status.finish();
  }

 private:
  using clock = std::chrono::steady_clock;
  // Limit on the spans between two reports. Later spans are missing in the trace, but their time
  // counts. Jobs that take microseconds would fill any trace.
  static constexpr std::size_t max_spans = 512;
  struct finished_span {
    const char* name;
    std::uint64_t start_us;
    std::uint64_t duration_us;
  };

  void end(const char* name, kind k, std::uint64_t start_us, std::int64_t ns) {
    (k == kind::work ? busy_ns_ : waited_ns_) += ns;
    if (spans_.size() < max_spans)
      spans_.push_back({name, start_us, static_cast<std::uint64_t>(ns / 1000)});
  }

  std::string name_;
  std::string room_;
  std::string device_type_;
  clock::time_point born_;
  std::uint64_t born_us_;
  std::uint64_t processed_ = 0;
  std::uint64_t failed_ = 0;
  std::int64_t busy_ns_ = 0;
  std::int64_t waited_ns_ = 0;
  std::map<std::string, double> numbers_;
  std::vector<finished_span> spans_;
};

}  // namespace hone
