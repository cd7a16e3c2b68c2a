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

// Reports that the pool cannot be opened, read or written, that its contents contradict each other,
// or that a request contradicts its contents (such as a version number that has been used).
// Messages of `database` name the folder and quote RocksDB's status if there is one.
struct pool_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Stores records in a RocksDB folder. A folder has at most one writer and any number of concurrent
// readers. The writer collects puts and removals in memory; commit() makes them durable together.
// The writer's get() and has() see collected changes, its scans do not. Not thread-safe: at most
// one thread may use a database at a time. Reads throw pool_error if RocksDB fails or a stored
// value is damaged.
class database {
 public:
  enum class mode {
    create_or_open,  // the writer
    // Reads a snapshot, also while a writer is live. If the writer has deleted a file that the
    // snapshot needs, a newer snapshot replaces it. Families that an older program did not have
    // are empty.
    read_only,
  };
  // Opens the pool in `folder`; a writer creates a missing one. Throws pool_error if there is no
  // pool to read, if another writer has it open, or if RocksDB cannot open it.
  database(const std::filesystem::path& folder, mode how);
  // Discards uncommitted changes.
  ~database();
  database(const database&) = delete;
  database& operator=(const database&) = delete;

  // Returns the value of a key, or nullopt if there is none.
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
  // Puts a value under a key that is not on disk. If the key is removed before the next commit,
  // neither the value nor the removal is written.
  template <class Schema>
  void put_first(family where, std::string_view key, const record<Schema>& value) {
    put_bytes(where, key, value.shared_bytes(), true);
  }
  // Puts a key without a value, which only scan_keys() and has() find.
  void put_key(family where, std::string_view key);
  void remove(family where, std::string_view key);

  // Makes all changes since the last commit durable in one write. Throws pool_error if the write
  // fails (for example on a full disk); none of the changes is written then.
  void commit();
  // Does so in two parts: write() makes the changes outlive this process, and sync() the machine.
  // Another thread may call sync() while this database is used. write() returns false if there was
  // nothing to write. It first syncs earlier writes, so that a machine that stops leaves one torn
  // record at the end of the log and not several, which recovery would refuse. Both throw
  // pool_error, sync() also after a write that failed.
  bool write();
  void sync();

  // Visits the committed entries whose keys begin with `prefix`, in key order, starting at
  // `prefix` + `from`, until `visit` returns false. `visit` may read from this database.
  template <class Schema>
  void scan(family where, std::string_view prefix,
            const std::function<bool(std::string_view key, const record<Schema>&)>& visit,
            std::string_view from = {}) const {
    scan_bytes(where, prefix, from, [&](std::string_view key, std::vector<char> bytes) {
      return visit(key, decode<Schema>(where, key, std::move(bytes)));
    });
  }
  // Visits the keys of the committed entries whose keys begin with `prefix`, in key order,
  // starting at `prefix` + `from`, until `visit` returns false.
  void scan_keys(family where, std::string_view prefix,
                 const std::function<bool(std::string_view key)>& visit,
                 std::string_view from = {}) const;

  // Rewrites all files, so that replaced and removed values take no space. Writer only. Throws
  // pool_error.
  void compact();
  // Counts the snapshots that a reader has opened or tried to open so far.
  std::uint64_t snapshots() const { return snapshots_; }
  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::optional<std::vector<char>> get_bytes(family where, std::string_view key) const;
  void put_bytes(family where, std::string_view key, std::shared_ptr<const std::vector<char>> value,
                 bool is_first);
  void scan_bytes(family where, std::string_view prefix, std::string_view from,
                  const std::function<bool(std::string_view, std::vector<char>)>& visit) const;

  // Checks only the framing of `bytes`, because RocksDB's checksums cover the contents.
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
  bool write(bool is_synced);
  void sync_log();
  template <class Visit>
  void walk(family where, std::string_view prefix, std::string begin, Visit visit) const;

  struct state;
  std::filesystem::path folder_;
  mode how_;
  // Shared, so that a walk keeps its snapshot alive while a read inside it opens a newer one.
  mutable std::shared_ptr<state> state_;
  mutable std::uint64_t snapshots_ = 0;
};

}  // namespace hone
