#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "messages/schema/training.capnp.h"
#include "storage/database.hpp"

namespace hone {

// The tree of policy versions: every version names its parent, numbers are never reused, and one
// version is the head, from which training goes on. Kept in memory; the caller writes records in
// the batch that they belong to.
class version_chain {
 public:
  explicit version_chain(const database& db);

  void add(const record<schema::PolicyVersion>& version);
  void set_head(std::uint64_t version) { head_ = version; }

  std::optional<std::uint64_t> head() const { return head_; }
  const record<schema::PolicyVersion>* find(std::uint64_t version) const;
  const std::map<std::uint64_t, record<schema::PolicyVersion>>& all() const { return versions_; }

  // From the root to `version`, both included; empty where it is unknown.
  std::vector<std::uint64_t> path_to(std::uint64_t version) const;
  bool is_ancestor(std::uint64_t ancestor, std::uint64_t version) const;  // or the same
  // Steps along the chain that the head is ahead of `version`; for a version on an abandoned
  // branch, of the point where the branch left the chain. Nothing where the version is unknown.
  std::optional<std::uint32_t> lag_of(std::uint64_t version) const;

 private:
  std::map<std::uint64_t, record<schema::PolicyVersion>> versions_;
  std::optional<std::uint64_t> head_;
};

}  // namespace hone
