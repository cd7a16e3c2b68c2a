#include "evaluation/devices/cpu_device.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include "evaluation/compile/cpu_compiler.hpp"
#include "evaluation/devices/cores.hpp"
#include "evaluation/devices/cpu_session.hpp"
#include "evaluation/devices/host_judge.hpp"
#include "evaluation/judge/oracle.hpp"

namespace hone {
namespace {

using steady = std::chrono::steady_clock;

constexpr std::uint64_t arena_bytes = 1ULL << 30U;  // virtual; pages exist once touched
constexpr std::uint64_t candidate_private_bytes = 4ULL << 30U;
constexpr std::size_t timing_memory = 8U << 20U;
constexpr auto open_limit = std::chrono::seconds(20);

std::string processor_model() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

// "Intel(R) Xeon(R) Processor @ 2.60GHz" -> "intel-xeon-processor-2.60ghz"
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

// Bytes a nanosecond that this core can write to its first-level cache: the best of many short
// tries, since nothing may be called impossible because of a slow moment.
double measure_write_bandwidth() {
  std::vector<char> buffer(16U << 10U);
  double best = 0;
  for (int attempt = 0; attempt < 200; ++attempt) {
    const auto begin = steady::now();
    constexpr int passes = 32;
    for (int i = 0; i < passes; ++i) {
      std::memset(buffer.data(), i, buffer.size());
      asm volatile("" : : "r"(buffer.data()) : "memory");
    }
    const double ns = std::chrono::duration<double, std::nano>(steady::now() - begin).count();
    best = std::max(best, static_cast<double>(passes) * static_cast<double>(buffer.size()) / ns);
  }
  return best;
}

class cpu_host final : public program_host {
 public:
  cpu_host(int core, unique_fd lock, std::chrono::milliseconds call_limit)
      : core_(core),
        call_limit_(call_limit),
        lock_(std::move(lock)),
        write_bandwidth_(measure_write_bandwidth()) {}

  std::variant<std::unique_ptr<program_session>, program_failure> open_candidate(
      const schema::Artifact::Reader& artifact, const task& t) override {
    if (candidate_arena_ == nullptr) candidate_arena_ = std::make_unique<arena>(arena_bytes);
    candidate_arena_->forget();
    auto process = fork(*candidate_arena_);
    const auto opened =
        process->open({{artifact.getPython(), t.inputs.size(), t.parameters.size()}},
                      std::string(view(artifact.getCode())), true, steady::now() + open_limit);
    if (const auto* failed = std::get_if<session_failure>(&opened))
      return program_failure{failed->outcome, "", failed->message};
    return std::make_unique<cpu_session>(std::move(process), *candidate_arena_);
  }

  std::unique_ptr<program_session> open_reference(const task& t) override {
    if (reference_arena_ == nullptr) reference_arena_ = std::make_unique<arena>(arena_bytes);
    auto process =
        open_trusted({{t.reference, t.inputs.size(), t.parameters.size()}}, *reference_arena_);
    return std::make_unique<cpu_session>(std::move(process), *reference_arena_);
  }

  std::unique_ptr<program_session> open_oracle(const task& t) override {
    auto memory = std::make_unique<arena>(arena_bytes);
    auto process = open_trusted(reference_oracle::programs(t), *memory);
    return std::make_unique<cpu_session>(std::move(process), std::move(memory));
  }

  timing_rules rules() const override { return {}; }
  verification_limits limits() const override { return {.call = call_limit_}; }
  std::size_t timing_memory_bytes() const override { return timing_memory; }
  // Half of what the fastest conceivable writer needs: only the impossible lies below.
  double floor_us_a_byte() const override { return 1 / (2 * write_bandwidth_) / 1e3; }

  double clock_mhz() const override {
    std::ifstream in("/proc/cpuinfo");
    int at = -1;
    for (std::string line; std::getline(in, line);) {
      if (line.starts_with("processor")) at = std::stoi(line.substr(line.find(':') + 1));
      if (at == core_ && line.starts_with("cpu MHz"))
        return std::stod(line.substr(line.find(':') + 1));
    }
    return 0;
  }
  std::string toolchain() const override { return compiler_name(); }
  std::string driver() const override { return "linux"; }

 private:
  // Every session comes from the same process: it has the same addresses as what it is compared
  // with.
  std::unique_ptr<sandbox_session> fork(arena& memory) {
    for (int attempt = 0;; ++attempt) {
      try {
        if (zygote_ == nullptr) zygote_ = sandbox_zygote::start();
        return zygote_->fork_session(&memory, candidate_private_bytes);
      } catch (const std::exception&) {
        zygote_.reset();  // it died: once more with a new one
        if (attempt > 0) throw;
      }
    }
  }

  std::unique_ptr<sandbox_session> open_trusted(const std::vector<host_source>& programs,
                                                arena& memory) {
    auto process = fork(memory);
    const auto opened = process->open(programs, "", false, steady::now() + open_limit);
    if (const auto* failed = std::get_if<session_failure>(&opened))
      throw reference_error(failed->outcome, failed->message);
    return process;
  }

  int core_;
  std::chrono::milliseconds call_limit_;
  unique_fd lock_;
  double write_bandwidth_;
  std::shared_ptr<sandbox_zygote> zygote_;
  std::unique_ptr<arena> candidate_arena_;
  std::unique_ptr<arena> reference_arena_;
};

}  // namespace

record<schema::DeviceType> cpu_device_type() {
  record_builder<schema::DeviceType> type;
  type->setName("cpu-" + slug(processor_model()) + "-" + compiler_name());
  type->setKind(schema::DeviceType::Kind::CPU);
  type->setTarget(native_target());
  return type.finish();
}

std::unique_ptr<judging_device> make_cpu_device(const cpu_device_options& options) {
  unique_fd lock;
  int core = options.core;
  if (!options.share_cores) {
    std::vector<int> wanted = core < 0 ? allowed_cores() : std::vector<int>{core};
    for (; !wanted.empty() && !lock; wanted.pop_back()) {
      core = wanted.back();
      lock = lock_core(core);
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
  return std::make_unique<judging_device>(name, options.node, cpu_device_type(),
                                          std::make_unique<host_judge>(std::make_unique<cpu_host>(
                                              core, std::move(lock), options.call_limit)));
}

}  // namespace hone
