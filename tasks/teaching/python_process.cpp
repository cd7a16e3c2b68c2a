#include "tasks/teaching/python_process.hpp"

#include <utility>

#include "process/framing.hpp"

namespace hone {

python_process start_python(const std::filesystem::path& python,
                            const std::filesystem::path& program,
                            const std::vector<std::string>& arguments, const std::string& name,
                            std::size_t max_bytes, bool ignores_stop_signals) {
  auto [ours, theirs] = socket_pair();
  child_options options;
  options.arguments = {python.string(), "-I", "-B", program.string()};
  options.arguments.insert(options.arguments.end(), arguments.begin(), arguments.end());
  inherit(options.environment, {"PATH", "HOME", "TMPDIR", "LANG", "LD_LIBRARY_PATH"});
  options.environment.emplace_back("OMP_NUM_THREADS=1");
  options.descriptors = {{theirs.get(), 0}, {theirs.get(), 1}};
  options.ignores_stop_signals = ignores_stop_signals;
  return {child_process(options), line_connection(std::move(ours), name, max_bytes)};
}

}  // namespace hone
