#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "messages/record.hpp"
#include "storage/keys.hpp"

namespace hone {

// The pool cannot be opened, read or written: the message names the folder and what RocksDB says of
// it.
struct pool_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// RocksDB behind records. One writer, which collects puts and removals and makes them durable
// together; reads see what has been collected. Any number of readers beside it. Not for more than
// one thread at a time.
class database {
 public:
  enum class mode {
    create_or_open,  // the writer
    read_only,  // a snapshot, also beside a live writer: where that has deleted what the snapshot
                // needs, a newer one takes its place
  };
  database(const std::filesystem::path& folder, mode how);
  ~database();
  database(const database&) = delete;
  database& operator=(const database&) = delete;

  template <class Schema>
  std::optional<record<Schema>> get(family where, std::string_view key) const {
    auto bytes = get_bytes(where, key);
    if (!bytes) return std::nullopt;
    return decode<Schema>(where, key, std::move(*bytes));
  }
  bool has(family where, std::string_view key) const { return get_bytes(where, key).has_value(); }

  template <class Schema>
  void put(family where, std::string_view key, const record<Schema>& value) {
    put_bytes(where, key, value.shared_bytes(), false);
  }
  // The same under a key that is not on disk: if it is removed before the next commit, nothing of
  // it is written at all.
  template <class Schema>
  void put_first(family where, std::string_view key, const record<Schema>& value) {
    put_bytes(where, key, value.shared_bytes(), true);
  }
  void remove(family where, std::string_view key);

  // Makes everything since the last commit durable in one write; throws pool_error, and nothing of
  // it is written, when that fails (a full disk, say).
  void commit();

  // Visits entries whose keys begin with `prefix`, in order, from `prefix` + `from` on, until
  // `visit` returns false. Sees committed entries only.
  template <class Schema>
  void scan(family where, std::string_view prefix,
            const std::function<bool(std::string_view key, const record<Schema>&)>& visit,
            std::string_view from = {}) const {
    scan_bytes(where, prefix, from, [&](std::string_view key, std::vector<char> bytes) {
      return visit(key, decode<Schema>(where, key, std::move(bytes)));
    });
  }
  void scan_keys(family where, std::string_view prefix,
                 const std::function<bool(std::string_view key)>& visit) const;

  // Rewrites everything on disk, so that what has been replaced or removed takes no space. For the
  // writer.
  void compact();
  // How many snapshots a reader has had to take so far.
  std::uint64_t snapshots() const { return snapshots_; }
  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::optional<std::vector<char>> get_bytes(family where, std::string_view key) const;
  void put_bytes(family where, std::string_view key, std::shared_ptr<const std::vector<char>> value,
                 bool is_first);
  void scan_bytes(family where, std::string_view prefix, std::string_view from,
                  const std::function<bool(std::string_view, std::vector<char>)>& visit) const;

  // RocksDB's checksums cover what comes back, so only the framing is looked at again.
  template <class Schema>
  record<Schema> decode(family where, std::string_view key, std::vector<char> bytes) const {
    if (bytes.size() < sizeof(capnp::word) || bytes.size() % sizeof(capnp::word) != 0)
      refuse(where, key);
    try {
      return record<Schema>::from_trusted_bytes(std::move(bytes));
    } catch (const kj::Exception&) {
      refuse(where, key);
    }
  }
  [[noreturn]] void refuse(family where, std::string_view key) const;

  void open() const;
  template <class Visit>
  void walk(family where, std::string_view prefix, std::string begin, Visit visit) const;

  struct state;
  std::filesystem::path folder_;
  mode how_;
  mutable std::shared_ptr<state> state_;  // a walk holds on to the one that it began with
  mutable std::uint64_t snapshots_ = 0;
};

}  // namespace hone
