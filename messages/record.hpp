#pragma once

#include <capnp/message.h>
#include <capnp/serialize.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "messages/validation.hpp"

namespace hone {

// Bytes from a network or a disk that are no valid record. The message says of which schema and
// what is wrong.
struct invalid_record : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// An immutable Cap'n Proto message: the same bytes in memory, on the wire and on disk. Copying
// shares the bytes; a record may be read on any number of threads at once. An empty record
// (default-constructed or moved from) must not be read.
template <class Schema>
class record {
 public:
  using reader = typename Schema::Reader;

  record() = default;

  // Bytes that nobody vouches for: checks size, depth and required fields; throws invalid_record.
  static record from_bytes(std::vector<char> bytes) {
    if (auto problem = find_problem({bytes.data(), bytes.size()}, capnp::Schema::from<Schema>())) {
      throw invalid_record(std::string(capnp::Schema::from<Schema>().getShortDisplayName().cStr()) +
                           ": " + *problem);
    }
    return from_trusted_bytes(std::move(bytes));
  }

  // Bytes that this process made or that a checksum covers.
  static record from_trusted_bytes(std::vector<char> bytes) {
    record made;
    made.message_ = std::make_shared<const message>(std::move(bytes));
    return made;
  }

  explicit operator bool() const { return message_ != nullptr; }
  reader operator*() const { return message_->root; }
  const reader* operator->() const { return &message_->root; }
  const std::vector<char>& bytes() const { return message_->bytes; }
  // The same bytes, kept alive without a copy.
  std::shared_ptr<const std::vector<char>> shared_bytes() const {
    return {message_, &message_->bytes};
  }

 private:
  struct message {
    explicit message(std::vector<char> owned)
        : bytes(std::move(owned)),
          // Allocations are aligned for words. The limit on traversal counts down over a reader's
          // life, so it is lifted: untrusted bytes have been walked once before they get here.
          source(kj::arrayPtr(reinterpret_cast<const capnp::word*>(bytes.data()),
                              bytes.size() / sizeof(capnp::word)),
                 {.traversalLimitInWords = ~std::uint64_t{0}, .nestingLimit = max_record_depth}),
          root(source.getRoot<Schema>()) {
    }  // the first getRoot is not thread-safe: it happens here

    std::vector<char> bytes;
    mutable capnp::FlatArrayMessageReader source;
    reader root;
  };

  std::shared_ptr<const message> message_;
};

// Builds a record: fill in root(), then finish().
template <class Schema>
class record_builder {
 public:
  record_builder() : root_(message_.initRoot<Schema>()) {}

  typename Schema::Builder root() { return root_; }
  typename Schema::Builder* operator->() { return &root_; }

  record<Schema> finish() {
    const std::size_t size = capnp::computeSerializedSizeInWords(message_) * sizeof(capnp::word);
    std::vector<char> bytes(size);
    kj::ArrayOutputStream out(kj::arrayPtr(reinterpret_cast<kj::byte*>(bytes.data()), size));
    capnp::writeMessage(out, message_);
    return record<Schema>::from_trusted_bytes(std::move(bytes));
  }

 private:
  capnp::MallocMessageBuilder message_;
  typename Schema::Builder root_;
};

// A record of its own with the contents of a part of another.
template <class Schema>
record<Schema> copy_record(typename Schema::Reader part) {
  capnp::MallocMessageBuilder message;
  message.setRoot(part);
  const std::size_t size = capnp::computeSerializedSizeInWords(message) * sizeof(capnp::word);
  std::vector<char> bytes(size);
  kj::ArrayOutputStream out(kj::arrayPtr(reinterpret_cast<kj::byte*>(bytes.data()), size));
  capnp::writeMessage(out, message);
  return record<Schema>::from_trusted_bytes(std::move(bytes));
}

// Text fields as the standard library's views. Valid as long as the record is.
inline std::string_view view(capnp::Text::Reader text) { return {text.begin(), text.size()}; }
inline std::string_view view(capnp::Data::Reader data) {
  return {reinterpret_cast<const char*>(data.begin()), data.size()};
}
inline capnp::Text::Reader as_text(const std::string& s) { return {s.data(), s.size()}; }
inline capnp::Data::Reader as_data(std::string_view bytes) {
  return {reinterpret_cast<const capnp::byte*>(bytes.data()), bytes.size()};
}

}  // namespace hone
