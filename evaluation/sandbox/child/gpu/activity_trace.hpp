#pragma once

#include <cstdint>

namespace hone {

// When the GPU worked for this process, on whatever stream, by CUPTI's clock: the third opinion on
// a burst of calls. Loaded at run time; where there is no CUPTI, or it may not look, it sees
// nothing. One thread, one a process.
class activity_trace {
 public:
  struct result {
    double span_ns = 0;  // from the first start to the last end
    double busy_ns = 0;  // of that, while anything ran
  };

  activity_trace();
  bool works() const { return works_; }
  void start();
  // What starts from here on counts, but for memory that is filled before anything else: by that
  // the host gets ahead of the device. Before this, what is first traced has taken its extra time.
  void begin();
  result stop();  // the device must be idle

 private:
  bool works_ = false;
  std::uint64_t begin_ns_ = 0;
};

}  // namespace hone
