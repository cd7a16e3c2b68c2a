#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "evaluation/device.hpp"

namespace hone {

struct cpu_device_options {
  int core = -1;             // locked and reserved; -1: the highest that is free
  bool share_cores = false;  // reserves no core, for when times do not matter
  std::string node{};
  std::string name{};  // as measurements name the device; empty: cpu:CORE
  // A call that takes longer is a timeout (evaluation.md section 3, point 6).
  std::chrono::milliseconds call_limit{10000};
};

// Returns the type of this machine's CPU devices: processor model and compiler.
record<schema::DeviceType> cpu_device_type();

// Makes a device of one processor core. The calling thread, which must be the one that uses the
// device, and all of the device's processes are bound to the core. Throws std::runtime_error if no
// core is free.
std::unique_ptr<device> make_cpu_device(const cpu_device_options& options);

}  // namespace hone
