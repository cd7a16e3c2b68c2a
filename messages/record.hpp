#pragma once

#include <capnp/message.h>
#include <capnp/serialize.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "messages/validation.hpp"

namespace hone {

// Reports bytes from a network or a disk that are not a valid record. The message names the schema
// and the problem.
struct invalid_record : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// An immutable Cap'n Proto message: the same bytes in memory, on the wire and on disk. Copies share
// the bytes. Any number of threads may read a record at once. An empty record (default-constructed
// or moved from) must not be read.
template <class Schema>
class record {
 public:
  using reader = typename Schema::Reader;

  record() = default;

  // Takes untrusted bytes, such as those from a network. Checks them with find_problem() and throws
  // invalid_record.
  static record from_bytes(std::vector<char> bytes) {
    if (auto problem = find_problem({bytes.data(), bytes.size()}, capnp::Schema::from<Schema>())) {
      throw invalid_record(std::string(capnp::Schema::from<Schema>().getShortDisplayName().cStr()) +
                           ": " + *problem);
    }
    return from_trusted_bytes(std::move(bytes));
  }

  // Takes bytes that this process made or that a checksum covers, without the checks of
  // from_bytes(). Throws kj::Exception if their framing is damaged.
  static record from_trusted_bytes(std::vector<char> bytes) {
    record made;
    made.message_ = std::make_shared<const message>(std::move(bytes));
    return made;
  }

  explicit operator bool() const { return message_ != nullptr; }
  reader operator*() const { return message_->root; }
  const reader* operator->() const { return &message_->root; }
  const std::vector<char>& bytes() const { return message_->bytes; }
  // Returns the bytes without a copy. The pointer keeps them alive.
  std::shared_ptr<const std::vector<char>> shared_bytes() const {
    return {message_, &message_->bytes};
  }

 private:
  struct message {
    explicit message(std::vector<char> owned)
        : bytes(std::move(owned)),
          // A vector's allocation is aligned for words. The traversal limit counts down over the
          // life of a reader, so it is lifted here; from_bytes() walks untrusted bytes beforehand.
          source(kj::arrayPtr(reinterpret_cast<const capnp::word*>(bytes.data()),
                              bytes.size() / sizeof(capnp::word)),
                 {.traversalLimitInWords = ~std::uint64_t{0}, .nestingLimit = max_record_depth}),
          // The first getRoot() is not thread-safe, so the constructor calls it.
          root(source.getRoot<Schema>()) {}

    std::vector<char> bytes;
    mutable capnp::FlatArrayMessageReader source;
    reader root;
  };

  std::shared_ptr<const message> message_;
};

// Builds a record: fill in root(), then call finish(). For one thread.
template <class Schema>
class record_builder {
 public:
  record_builder() : message_(first_segment()), root_(message_.initRoot<Schema>()) {}
  // Begins with a copy of `from`.
  explicit record_builder(typename Schema::Reader from)
      : message_(first_segment()), root_((message_.setRoot(from), message_.getRoot<Schema>())) {}

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
  kj::ArrayPtr<capnp::word> first_segment() {
    return kj::arrayPtr(reinterpret_cast<capnp::word*>(room_.data()), room_.size());
  }

  // Most records fit into this room, so that no segment is allocated for them.
  std::array<std::uint64_t, 512> room_{};
  capnp::MallocMessageBuilder message_;
  typename Schema::Builder root_;
};

// Copies a part of a record, such as one of its structs, into a separate record. Throws
// invalid_record if that would be larger than a copy of any record that from_bytes() accepts.
template <class Schema>
record<Schema> copy_record(typename Schema::Reader part) {
  // A message of one segment: the header (the number of further segments and the words of the
  // first, 4 bytes each), the root's pointer, and the part.
  const std::uint64_t words = part.totalSize().wordCount + 1;
  if (words > max_words_read(max_record_bytes / sizeof(capnp::word)))
    throw invalid_record("a copy would take " + std::to_string(words) + " words");
  const auto size = static_cast<std::uint32_t>(words);
  std::vector<char> bytes((words + 1) * sizeof(capnp::word));
  std::memcpy(bytes.data() + sizeof size, &size, sizeof size);
  capnp::copyToUnchecked(part,
                         kj::arrayPtr(reinterpret_cast<capnp::word*>(bytes.data()) + 1, words));
  return record<Schema>::from_trusted_bytes(std::move(bytes));
}

// Convert between Cap'n Proto's text and data fields and the standard library's strings, without a
// copy: the result is valid as long as the bytes that it was made from.
inline std::string_view view(capnp::Text::Reader text) { return {text.begin(), text.size()}; }
inline std::string_view view(capnp::Data::Reader data) {
  return {reinterpret_cast<const char*>(data.begin()), data.size()};
}
inline capnp::Data::Reader as_data(std::string_view bytes) {
  return {reinterpret_cast<const capnp::byte*>(bytes.data()), bytes.size()};
}

}  // namespace hone
