#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "evaluation/devices/device.hpp"

namespace hone {

// What a simulated device pretends. A variant's true speed-up is a log-normal draw that its
// identity and the device's name decide; each measurement adds noise. No code runs.
struct simulated_device_options {
  std::string name = "a";
  std::int64_t verify_us = 20000;
  std::int64_t measure_us = 50000;
  double ok_share = 0.8;  // of variants, by identity; the others end as wrong_result
  double median_speedup = 1.0;
  double spread = 0.5;  // standard deviation of the logarithm of the true speed-up
  double noise = 0.01;  // the same of a measurement around it
  std::string node;
  std::string device_name;  // what measurements call it; empty: simulated:NAME
};

// The type is "simulated-NAME": its scores never mix with measured ones.
record<schema::DeviceType> simulated_device_type(const std::string& name);

std::unique_ptr<device> make_simulated_device(const simulated_device_options& options);

}  // namespace hone
