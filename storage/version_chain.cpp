#include "storage/version_chain.hpp"

#include <algorithm>

#include "messages/schema/storage.capnp.h"

namespace hone {

version_chain::version_chain(const database& db) {
  db.scan<schema::PolicyVersion>(
      family::versions, "",
      [&](std::string_view /*key*/, const record<schema::PolicyVersion>& version) {
        add(version);
        return true;
      });
  if (const auto format = db.get<schema::PoolFormat>(family::meta, "format");
      format && (*format)->getHasHead())
    head_ = (*format)->getHeadVersion();
}

void version_chain::add(const record<schema::PolicyVersion>& version) {
  versions_[version->getVersion()] = version;
}

const record<schema::PolicyVersion>* version_chain::find(std::uint64_t version) const {
  const auto found = versions_.find(version);
  return found != versions_.end() ? &found->second : nullptr;
}

std::vector<std::uint64_t> version_chain::path_to(std::uint64_t version) const {
  std::vector<std::uint64_t> path;
  for (const auto* at = find(version); at != nullptr; at = find((*at)->getParent())) {
    path.push_back((*at)->getVersion());
    if ((*at)->getParent() == (*at)->getVersion() || path.size() > versions_.size()) break;
  }
  std::reverse(path.begin(), path.end());
  return path;
}

bool version_chain::is_ancestor(std::uint64_t ancestor, std::uint64_t version) const {
  const auto* wanted = find(ancestor);
  const auto* at = find(version);
  // Depths fall by one with every parent, so the walk ends at the ancestor's depth.
  while (wanted != nullptr && at != nullptr && (*at)->getDepth() > (*wanted)->getDepth())
    at = find((*at)->getParent());
  return wanted != nullptr && at != nullptr && (*at)->getVersion() == ancestor;
}

std::optional<std::uint32_t> version_chain::lag_of(std::uint64_t version) const {
  const auto* at = find(version);
  const auto* head = head_version();
  if (at == nullptr || head == nullptr) return std::nullopt;
  while (!is_ancestor((*at)->getVersion(), *head_)) {
    if ((*at)->getParent() == (*at)->getVersion()) return std::nullopt;
    at = find((*at)->getParent());
    if (at == nullptr) return std::nullopt;
  }
  return (*head)->getDepth() - (*at)->getDepth();
}

}  // namespace hone
