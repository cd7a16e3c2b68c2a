#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "evaluation/backends/cores.hpp"
#include "evaluation/backends/device.hpp"

namespace hone {

struct cpu_device_options {
  reserved_core core{};      // any: the highest that is free
  bool share_cores = false;  // locks no core, for cases in which times do not matter
  std::string node{};
  std::string name{};  // as measurements name the device; empty: cpu:CORE
  // A call that takes longer is a timeout (evaluation.md section 3, point 6).
  std::chrono::milliseconds call_limit{10000};
};

// Returns the type of this machine's CPU devices: processor model and compiler.
record<schema::DeviceType> cpu_device_type();

// Returns the type of a device that shares its cores with others. Its name ends in "-shared", so
// that nothing compares its scores with those of a device that has a core for itself.
record<schema::DeviceType> type_with_shared_cores(const record<schema::DeviceType>& type);

// Makes a device of one processor core. Must be called on the thread that will use the device: this
// thread and all of the device's processes are bound to the core, unless cores are shared. Throws
// std::runtime_error if no core is free.
std::unique_ptr<device> make_cpu_device(const cpu_device_options& options);

}  // namespace hone
