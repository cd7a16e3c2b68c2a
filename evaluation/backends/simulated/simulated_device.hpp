#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "evaluation/backends/device.hpp"

namespace hone {

// The behavior of a simulated device. The true speed-up of a variant is a log-normal draw that the
// variant's id and the device's name determine; each measurement adds noise. No code is run.
struct simulated_device_options {
  std::string name = "a";
  std::int64_t verify_us = 20000;   // duration of a verification
  std::int64_t measure_us = 50000;  // duration of a measurement
  // Share of variants that are `ok`, decided by the variant's id; the others end as `wrong_result`.
  double ok_share = 0.8;
  double median_speedup = 1.0;
  double spread = 0.5;  // standard deviation of the logarithm of true speed-ups
  double noise = 0.01;  // standard deviation of the logarithm of measured over true speed-up
  std::string node;
  std::string device_name;  // as measurements name the device; empty: simulated:NAME
};

// Returns the type "simulated-NAME". Its scores never mix with measured ones.
record<schema::DeviceType> simulated_device_type(const std::string& name);

std::unique_ptr<device> make_simulated_device(const simulated_device_options& options);

}  // namespace hone
