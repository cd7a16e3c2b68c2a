#include "launch/run/metrics_file.hpp"

#include <nlohmann/json.hpp>

#include "messages/names.hpp"

namespace hone {

void metrics_file::write(const version_record& version, const learned_step& learned) {
  nlohmann::ordered_json line = {{"time_ms", version->getCreatedMs()},
                                 {"version", version->getVersion()},
                                 {"parent", version->getParent()},
                                 {"stage", name_of(learned.stage)},
                                 {"step", learned.step}};
  for (const auto& [name, value] : learned.numbers) line[name] = value;
  out_ << line.dump() << std::endl;
}

}  // namespace hone
