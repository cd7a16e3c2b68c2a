#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "messages/schema/training.capnp.h"
#include "storage/database.hpp"

namespace hone {

// Holds the tree of policy versions in memory. Every version names its parent, numbers are never
// reused, and training continues from one version, the head. The constructor reads the stored
// versions and the head; writing them is the caller's task, so that they become durable together
// with their step.
class version_chain {
 public:
  explicit version_chain(const database& db);

  void add(const record<schema::PolicyVersion>& version);
  void set_head(std::uint64_t version) { head_ = version; }

  std::optional<std::uint64_t> head() const { return head_; }
  // Returns nullptr if there is no head.
  const record<schema::PolicyVersion>* head_version() const {
    return head_ ? find(*head_) : nullptr;
  }
  // Returns nullptr if the version is unknown.
  const record<schema::PolicyVersion>* find(std::uint64_t version) const;
  const std::map<std::uint64_t, record<schema::PolicyVersion>>& all() const { return versions_; }

  // Returns the versions from the root to `version`, both included; empty if `version` is unknown.
  std::vector<std::uint64_t> path_to(std::uint64_t version) const;
  // True if `ancestor` is `version`, its parent, its parent's parent, and so on.
  bool is_ancestor(std::uint64_t ancestor, std::uint64_t version) const;
  // Returns the number of steps by which the head is ahead of `version` along the chain. For a
  // version on an abandoned branch, counts from the version at which the branch left the chain.
  // Returns nullopt if the version is unknown or there is no head.
  std::optional<std::uint32_t> lag_of(std::uint64_t version) const;

 private:
  std::map<std::uint64_t, record<schema::PolicyVersion>> versions_;
  std::optional<std::uint64_t> head_;
};

}  // namespace hone
