#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "evaluation/devices/device.hpp"
#include "evaluation/devices/judging_device.hpp"

namespace hone {

struct cpu_device_options {
  int core = -1;             // -1: the highest that nobody has; it is locked and reserved
  bool share_cores = false;  // do not reserve: for when times do not matter
  std::string node{};
  std::string name{};  // what measurements call it; empty: cpu:CORE
  std::chrono::milliseconds call_limit{
      10000};  // one call that takes longer is a timeout (evaluation.md section 3, point 6)
};

// The type of this machine's CPU devices: processor model and compiler.
record<schema::DeviceType> cpu_device_type();

// Makes a device of one processor core. It must be made on the thread that will use it: that
// thread, and all processes of the device, are bound to the core. Throws std::runtime_error when no
// core is free.
std::unique_ptr<judging_device> make_cpu_device(const cpu_device_options& options);

}  // namespace hone
