#include "storage/database.hpp"

#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/memtablerep.h>
#include <rocksdb/slice_transform.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace hone {
namespace {

using rocksdb::Slice;

// Limits the log that is replayed when the pool is opened after a kill. With this limit a pool of a
// million variants opens in under three seconds.
constexpr std::uint64_t max_log_bytes = 64ULL << 20U;
constexpr std::size_t block_cache_bytes = 8ULL << 20U;
constexpr std::size_t write_buffer_bytes = 8ULL << 20U;

// Number of lists among which a memtable distributes its thousands of entries.
constexpr std::size_t memtable_lists = 20'000;
constexpr std::size_t id_bytes = 16;

// Number of snapshots in a row that a reader finds out of date before it gives up.
constexpr int max_snapshots = 20;

// True if a file of a reader's snapshot no longer exists. A live writer's compactions delete such
// files, and RocksDB opens some of them only when they are read.
bool is_file_gone(const rocksdb::Status& status) {
  return !status.ok() && status.ToString().find("No such file or directory") != std::string::npos;
}

// Throws pool_error about an operation of RocksDB that failed. done: "opened", "written".
[[noreturn]] void fail(const std::filesystem::path& folder, const std::string& done,
                       const rocksdb::Status& status) {
  const std::string begin = folder.string() + ": cannot be " + done + ": ";
  if (status.IsNoSpace()) throw pool_error(begin + "the disk is full (" + status.ToString() + ")");
  if (status.IsCorruption() || is_file_gone(status))
    throw pool_error(begin + "a file is damaged or missing (" + status.ToString() +
                     "); restore the folder from a copy, or begin the run anew");
  throw pool_error(begin + status.ToString());
}

Slice slice(std::string_view s) { return {s.data(), s.size()}; }
std::string_view text(const Slice& s) { return {s.data(), s.size()}; }

// RocksDB aborts where its log of messages cannot be written, as on a full disk. What matters of it
// reaches the caller as a status.
class no_messages : public rocksdb::Logger {
 public:
  using Logger::Logv;
  void Logv(const char* /*format*/, va_list /*arguments*/) override {}
};

rocksdb::DBOptions database_options(bool writes) {
  rocksdb::DBOptions options;
  options.create_if_missing = writes;
  options.create_missing_column_families = writes;
  options.max_total_wal_size = max_log_bytes;
  options.max_background_jobs = 2;
  options.max_open_files = writes ? 512 : -1;
  options.bytes_per_sync = 1U << 20U;
  options.info_log = std::make_shared<no_messages>();
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  options.atomic_flush = false;
  options.allow_concurrent_memtable_write = false;  // memtables of lists do not allow it
  return options;
}

// True for the families with an entry for each variant, rollout or group, whose keys begin with its
// id. Ids are random.
bool has_many_ids(family which) {
  switch (which) {
    case family::variants:
    case family::rollouts:
    case family::groups:
    case family::progress:
    case family::evaluations:
    case family::pending:
    case family::shown:
      return true;
    default:
      return false;
  }
}

// Keeps large values in blob files, which compaction does not rewrite. Keys are hashes, so every
// compaction would otherwise rewrite all values. Small values stay in the tree.
rocksdb::ColumnFamilyOptions family_options(family which,
                                            const std::shared_ptr<rocksdb::Cache>& cache) {
  rocksdb::ColumnFamilyOptions options;
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = cache;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  // Indexes and filters stay in memory with their open files, about 10 MB per million variants,
  // because each new key is looked up in most of them.
  table.block_size = 4096;
  table.format_version = 5;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  options.write_buffer_size = write_buffer_bytes;
  if (has_many_ids(which)) {
    // Each insertion of a random key into a sorted memtable would begin at its top.
    options.prefix_extractor.reset(rocksdb::NewCappedPrefixTransform(id_bytes));
    options.memtable_factory.reset(rocksdb::NewHashLinkListRepFactory(memtable_lists));
  }
  // Most look-ups are for keys that do not exist yet. Where keys begin with ids, these are
  // filtered.
  options.memtable_whole_key_filtering = !has_many_ids(which);
  options.memtable_prefix_bloom_size_ratio = 0.02;
  options.max_write_buffer_number = 4;
  // The exemplar index holds ids, which do not compress.
  options.compression =
      which == family::exemplars ? rocksdb::kNoCompression : rocksdb::kLZ4Compression;
  options.level0_file_num_compaction_trigger = 8;
  options.level0_slowdown_writes_trigger = 40;
  options.level0_stop_writes_trigger = 60;
  options.target_file_size_base = 32U << 20U;
  options.max_bytes_for_level_base = 256U << 20U;
  if (which == family::variants || which == family::groups || which == family::evaluations ||
      which == family::steps) {
    options.enable_blob_files = true;
    options.min_blob_size = 512;
    options.blob_compression_type = rocksdb::kLZ4Compression;
    options.blob_file_size = 128U << 20U;
    // Evaluations are replaced as measurements are added, groups as their parts are removed. The
    // others stay, and looking for garbage among them would rewrite them in vain.
    options.enable_blob_garbage_collection =
        which == family::evaluations || which == family::groups;
  }
  return options;
}

}  // namespace

struct database::state {
  std::unique_ptr<rocksdb::DB> db;
  std::array<rocksdb::ColumnFamilyHandle*, family_count> families{};
  // Holds the last change to a key since the last commit. Only that change is written, and reading
  // an uncommitted value costs one look-up in a hash table.
  struct change {
    std::shared_ptr<const std::vector<char>> value;  // null: the key is removed
    bool is_first = false;                           // the key is not on disk
  };
  std::array<std::unordered_map<std::string, change>, family_count> uncommitted;
  // Kept between commits for its memory: allocating the megabytes anew takes a tenth of a commit.
  rocksdb::WriteBatch batch;
  // Guards the log, which one thread may sync while another writes.
  std::mutex log;
  bool has_unsynced = false;      // the last write
  bool has_failed_write = false;  // RocksDB aborts where the log is used after that

  ~state() {
    for (auto* one : families) {
      if (one != nullptr) db->DestroyColumnFamilyHandle(one);
    }
  }
  rocksdb::ColumnFamilyHandle* handle(family which) const {
    return families[static_cast<std::size_t>(which)];
  }
};

database::database(const std::filesystem::path& folder, mode how) : folder_(folder), how_(how) {
  if (how == mode::read_only && !std::filesystem::exists(folder / "CURRENT"))
    throw pool_error(folder.string() + ": there is no pool here");
  if (how == mode::create_or_open) std::filesystem::create_directories(folder);
  open();
}

void database::open() const {
  state_ = std::make_shared<state>();
  const auto cache = rocksdb::NewLRUCache(block_cache_bytes, 2);
  const rocksdb::DBOptions options = database_options(how_ == mode::create_or_open);
  std::vector<rocksdb::ColumnFamilyDescriptor> descriptors;
  std::vector<std::size_t> present;
  std::vector<std::string> existing;
  if (how_ == mode::read_only)
    (void)rocksdb::DB::ListColumnFamilies(options, folder_.string(), &existing);
  for (std::size_t i = 0; i < family_count; ++i) {
    if (!existing.empty() &&
        std::find(existing.begin(), existing.end(), family_names[i]) == existing.end())
      continue;
    present.push_back(i);
    descriptors.emplace_back(family_names[i], family_options(static_cast<family>(i), cache));
  }
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* opened = nullptr;
  rocksdb::Status status;
  if (how_ == mode::create_or_open) {
    status = rocksdb::DB::Open(options, folder_.string(), descriptors, &handles, &opened);
  } else {
    for (int attempt = 0; attempt < max_snapshots; ++attempt) {
      status =
          rocksdb::DB::OpenForReadOnly(options, folder_.string(), descriptors, &handles, &opened);
      ++snapshots_;
      if (!is_file_gone(status)) break;
    }
  }
  if (!status.ok()) {
    // Readers take no lock. RocksDB tells of another process's, and of one of this process.
    const std::string text = status.ToString();
    const bool is_locked = how_ == mode::create_or_open && status.IsIOError() &&
                           (text.find("While lock file") != std::string::npos ||
                            text.find("lock hold by") != std::string::npos);
    if (is_locked)
      throw pool_error(folder_.string() + ": in use by another process (" + text + ")");
    fail(folder_, "opened", status);
  }
  state_->db.reset(opened);
  for (std::size_t i = 0; i < handles.size(); ++i) state_->families[present[i]] = handles[i];
}

// Flushes the log, so that the next opening need not replay it. If the flush fails, the next
// opening replays the log.
database::~database() {
  if (how_ == mode::create_or_open)
    (void)state_->db->Flush({}, {state_->families.begin(), state_->families.end()});
}

void database::refuse(family where, std::string_view key) const {
  throw pool_error(folder_.string() + ": a value in " +
                   family_names[static_cast<std::size_t>(where)] + " is damaged (key of " +
                   std::to_string(key.size()) + " bytes)");
}

std::optional<std::vector<char>> database::get_bytes(family where, std::string_view key) const {
  const auto& own = state_->uncommitted[static_cast<std::size_t>(where)];
  if (!own.empty()) {
    if (const auto found = own.find(std::string(key)); found != own.end()) {
      if (found->second.value == nullptr) return std::nullopt;
      return *found->second.value;
    }
  }
  if (state_->handle(where) == nullptr) return std::nullopt;
  rocksdb::PinnableSlice value;
  rocksdb::Status status = state_->db->Get({}, state_->handle(where), slice(key), &value);
  for (int attempt = 1; attempt < max_snapshots && how_ == mode::read_only && is_file_gone(status);
       ++attempt) {
    value.Reset();
    open();
    status = state_->db->Get({}, state_->handle(where), slice(key), &value);
  }
  if (status.IsNotFound()) return std::nullopt;
  if (!status.ok()) fail(folder_, "read", status);
  return std::vector<char>(value.data(), value.data() + value.size());
}

void database::put_bytes(family where, std::string_view key,
                         std::shared_ptr<const std::vector<char>> value, bool is_first) {
  const auto [entry, fresh] =
      state_->uncommitted[static_cast<std::size_t>(where)].try_emplace(std::string(key));
  entry->second.value = std::move(value);
  if (fresh) entry->second.is_first = is_first;
}

void database::put_key(family where, std::string_view key) {
  put_bytes(where, key, std::make_shared<const std::vector<char>>(), false);
}

void database::remove(family where, std::string_view key) {
  auto& changes = state_->uncommitted[static_cast<std::size_t>(where)];
  const auto entry = changes.try_emplace(std::string(key)).first;
  entry->second.value = nullptr;
  if (entry->second.is_first) changes.erase(entry);
}

void database::commit() { write(true); }

bool database::write() { return write(false); }

void database::sync() {
  const std::lock_guard lock(state_->log);
  sync_log();
}

void database::sync_log() {
  if (state_->has_failed_write)
    throw pool_error(folder_.string() + ": cannot be synced, since a write has failed");
  const rocksdb::Status status = state_->db->SyncWAL();
  state_->has_failed_write = !status.ok();
  if (!status.ok()) fail(folder_, "synced", status);
  state_->has_unsynced = false;
}

bool database::write(bool is_synced) {
  rocksdb::WriteBatch& batch = state_->batch;
  batch.Clear();
  for (std::size_t i = 0; i < family_count; ++i) {
    // In key order, each insertion into a sorted memtable starts where the previous one ended.
    std::vector<const std::pair<const std::string, state::change>*> entries;
    for (const auto& entry : state_->uncommitted[i]) entries.push_back(&entry);
    if (!has_many_ids(static_cast<family>(i))) {
      std::sort(entries.begin(), entries.end(),
                [](const auto* a, const auto* b) { return a->first < b->first; });
    }
    for (const auto* entry : entries) {
      if (const auto& value = entry->second.value; value != nullptr) {
        batch.Put(state_->families[i], entry->first, Slice(value->data(), value->size()));
      } else {
        batch.Delete(state_->families[i], entry->first);
      }
    }
  }
  const std::lock_guard lock(state_->log);
  if (state_->has_failed_write)
    throw pool_error(folder_.string() + ": cannot be written, since an earlier write has failed");
  if (state_->has_unsynced) sync_log();
  if (batch.Count() == 0) return false;
  rocksdb::WriteOptions options;
  options.sync = is_synced;
  const rocksdb::Status status = state_->db->Write(options, &batch);
  state_->has_failed_write = !status.ok();
  if (!status.ok()) fail(folder_, "written", status);
  state_->has_unsynced = !is_synced;
  for (auto& entries : state_->uncommitted) entries.clear();
  return true;
}

// Visits the entries from `begin` on. If a file of the snapshot is gone, a reader continues in a
// newer snapshot behind the last entry that it visited.
template <class Visit>
void database::walk(family where, std::string_view prefix, std::string begin, Visit visit) const {
  rocksdb::ReadOptions options;
  // A memtable of lists is sorted for a walk over several ids, and not for one over a single id.
  options.prefix_same_as_start = has_many_ids(where) && prefix.size() >= id_bytes;
  options.total_order_seek = !options.prefix_same_as_start;
  bool has_begun = false;  // `begin` has been visited
  for (int attempt = 1;; ++attempt) {
    // `visit` may read from this database and thereby replace state_ by a newer snapshot.
    const std::shared_ptr<state> walked = state_;
    if (walked->handle(where) == nullptr) return;
    const std::unique_ptr<rocksdb::Iterator> it(
        walked->db->NewIterator(options, walked->handle(where)));
    it->Seek(begin);
    if (has_begun && it->Valid() && text(it->key()) == begin) it->Next();
    for (; it->Valid(); it->Next()) {
      const std::string_view key = text(it->key());
      if (!key.starts_with(prefix) || !visit(key, it->value())) return;
      begin = key;
      has_begun = true;
      attempt = 1;
    }
    if (it->status().ok()) return;
    if (how_ != mode::read_only || !is_file_gone(it->status()) || attempt == max_snapshots)
      fail(folder_, "read", it->status());
    if (walked == state_) open();
  }
}

void database::scan_bytes(
    family where, std::string_view prefix, std::string_view from,
    const std::function<bool(std::string_view, std::vector<char>)>& visit) const {
  walk(where, prefix, std::string(prefix) + std::string(from),
       [&](std::string_view key, const Slice& value) {
         return visit(key, std::vector<char>(value.data(), value.data() + value.size()));
       });
}

void database::scan_keys(family where, std::string_view prefix,
                         const std::function<bool(std::string_view key)>& visit,
                         std::string_view from) const {
  walk(where, prefix, std::string(prefix) + std::string(from),
       [&](std::string_view key, const Slice&) { return visit(key); });
}

void database::compact() {
  for (std::size_t i = 0; i < family_count; ++i) {
    rocksdb::CompactRangeOptions options;
    options.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
    options.blob_garbage_collection_policy = rocksdb::BlobGarbageCollectionPolicy::kForce;
    options.blob_garbage_collection_age_cutoff = 1.0;
    const rocksdb::Status status =
        state_->db->CompactRange(options, state_->families[i], nullptr, nullptr);
    if (!status.ok()) fail(folder_, "compacted", status);
  }
}

}  // namespace hone
