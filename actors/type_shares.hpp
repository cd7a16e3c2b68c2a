#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace hone {

// Divides workers that serve several device types between these by the time that jobs take: the
// type that has had the least of it is next, so that none waits for a slow one's line. A type that
// had no jobs for a while gets no more than the others for it. The time of a job is estimated by
// those of the earlier ones of its type.
class type_shares {
 public:
  using seconds = std::chrono::duration<double>;

  // A job of this type is the first one to wait.
  void begin_to_wait(const std::string& device_type);
  void count(const std::string& device_type);
  void learn(const std::string& device_type, seconds taken);
  // Returns these types, the one that is next first.
  std::vector<std::string> in_turn(std::vector<std::string> device_types) const;

 private:
  struct share {
    seconds had{};               // of the workers' time
    seconds job = min_of_a_job;  // what one takes
    std::uint64_t turn = 0;      // when it was last served
  };
  static constexpr seconds min_of_a_job{1e-4};
  seconds now_{};  // what the type had that was served last
  std::uint64_t turn_ = 0;
  std::map<std::string, share> of_;  // by device type
};

}  // namespace hone
