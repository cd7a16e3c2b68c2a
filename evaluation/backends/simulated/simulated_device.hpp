#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "evaluation/device.hpp"

namespace hone {

// How a simulated device behaves. The true speed-up of a variant is a log-normal draw that its
// identity and the device's name decide; each measurement adds noise. No code runs.
struct simulated_device_options {
  std::string name = "a";
  std::int64_t verify_us = 20000;
  std::int64_t measure_us = 50000;
  // Share of variants, by identity, that are ok; the others end as wrong_result.
  double ok_share = 0.8;
  double median_speedup = 1.0;
  double spread = 0.5;  // standard deviation of the logarithm of the true speed-up
  double noise = 0.01;  // standard deviation of the logarithm of a measurement around it
  std::string node;
  std::string device_name;  // as measurements name the device; empty: simulated:NAME
};

// Returns the type "simulated-NAME". Its scores never mix with measured ones.
record<schema::DeviceType> simulated_device_type(const std::string& name);

std::unique_ptr<device> make_simulated_device(const simulated_device_options& options);

}  // namespace hone
