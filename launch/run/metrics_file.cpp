#include "launch/run/metrics_file.hpp"

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "messages/names.hpp"
#include "process/cut_line.hpp"
#include "process/write_failure.hpp"

namespace hone {

metrics_file::metrics_file(const std::filesystem::path& path) : path_(path) {
  remove_cut_line(path);
  out_.open(path, std::ios::app);
}

void metrics_file::write(const version_record& version, const learned_step& learned) {
  nlohmann::ordered_json line = {{"time_ms", version->getCreatedMs()},
                                 {"version", version->getVersion()},
                                 {"parent", version->getParent()},
                                 {"stage", name_of(learned.stage)},
                                 {"step", learned.step}};
  for (const auto& [name, value] : learned.numbers) line[name] = value;
  errno = 0;
  out_ << line.dump() << std::endl;
  if (!out_) throw std::runtime_error(write_failure(path_));
}

}  // namespace hone
