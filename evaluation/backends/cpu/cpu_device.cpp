#include "evaluation/backends/cpu/cpu_device.hpp"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <stdexcept>
#include <vector>

#include "evaluation/backends/cores.hpp"
#include "evaluation/backends/cpu/cpu_judge.hpp"
#include "evaluation/backends/judging_device.hpp"
#include "evaluation/compile/cpu/host_toolchain.hpp"

namespace hone {
namespace {

std::string processor_model() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

// Converts "Intel(R) Xeon(R) Processor @ 2.60GHz" to "intel-xeon-processor-2.60ghz".
std::string slug(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(') {
      i = std::min(text.find(')', i), text.size());
    } else if (std::isalnum(static_cast<unsigned char>(text[i])) != 0 || text[i] == '.') {
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(text[i])));
    } else if (!out.empty() && out.back() != '-') {
      out += '-';
    }
  }
  while (out.ends_with('-')) out.pop_back();
  return out;
}

}  // namespace

record<schema::DeviceType> cpu_device_type() {
  record_builder<schema::DeviceType> type;
  type->setName("cpu-" + slug(processor_model()) + "-" + compiler_name());
  type->setKind(schema::DeviceType::Kind::CPU);
  type->setTarget(native_target());
  return type.finish();
}

record<schema::DeviceType> type_with_shared_cores(const record<schema::DeviceType>& type) {
  record_builder<schema::DeviceType> shared(*type);
  shared->setName(std::string(view(type->getName())) + "-shared");
  return shared.finish();
}

std::unique_ptr<device> make_cpu_device(const cpu_device_options& options) {
  unique_fd lock;
  int core = options.core.number;
  if (!options.share_cores) {
    if (core >= 0) {
      lock = options.core.take_lock();
    } else {
      for (std::vector<int> wanted = allowed_cores(); !wanted.empty() && !lock; wanted.pop_back()) {
        core = wanted.back();
        lock = lock_core(core);
      }
    }
    if (!lock)
      throw std::runtime_error(
          "other processes of Hone have reserved the processor's cores (down to core " +
          std::to_string(core) + ")");
    bind_thread({core});
  }
  const std::string name = !options.name.empty() ? options.name
                           : core >= 0           ? "cpu:" + std::to_string(core)
                                                 : "cpu";
  return std::make_unique<judging_device>(
      name, options.node,
      options.share_cores ? type_with_shared_cores(cpu_device_type()) : cpu_device_type(),
      std::make_unique<cpu_judge>(core, std::move(lock), options.call_limit));
}

}  // namespace hone
