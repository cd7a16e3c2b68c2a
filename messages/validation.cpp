#include "messages/validation.hpp"

#include <capnp/dynamic.h>
#include <capnp/serialize.h>
#include <kj/exception.h>

#include <unordered_map>
#include <utility>
#include <vector>

namespace hone {
namespace {

// The id of `annotation required` in schema/identity.capnp.
constexpr std::uint64_t required_annotation = 0xe8d1f7b24a90c365;

bool is_required(capnp::StructSchema::Field field) {
  for (auto annotation : field.getProto().getAnnotations()) {
    if (annotation.getId() == required_annotation) return true;
  }
  return false;
}

// True if a value of this type can be wrong. Every bit pattern of a number is one.
bool needs_check(capnp::Type type) {
  return type.isEnum() || type.isStruct() || type.isList() || type.isText() || type.isData() ||
         type.isAnyPointer() || type.isInterface();
}

struct checked_field {
  capnp::StructSchema::Field field;
  bool is_required = false;
};

// Returns the fields of a struct that need a look. Schemas are looked through once per thread,
// because that takes longer than the check of a record.
const std::vector<checked_field>& checked_fields(capnp::StructSchema schema) {
  thread_local std::unordered_map<std::uint64_t, std::vector<checked_field>> known;
  const std::uint64_t id = schema.getProto().getId();
  if (const auto found = known.find(id); found != known.end()) return found->second;
  std::vector<checked_field> fields;
  for (capnp::StructSchema::Field field : schema.getFields()) {
    const checked_field one{field, is_required(field)};
    if (one.is_required || needs_check(field.getType())) fields.push_back(one);
  }
  return known.emplace(id, std::move(fields)).first->second;
}

std::optional<std::string> check_value(const capnp::DynamicValue::Reader& value);

std::optional<std::string> check_struct(capnp::DynamicStruct::Reader reader) {
  for (const auto& [field, has_to_be_there] : checked_fields(reader.getSchema())) {
    const auto name = [&field] { return std::string(field.getProto().getName().cStr()); };
    if (!reader.has(field)) {
      if (has_to_be_there) return "field " + name() + " is missing";
      continue;
    }
    if (auto problem = check_value(reader.get(field))) return name() + ": " + *problem;
  }
  return std::nullopt;
}

std::optional<std::string> check_value(const capnp::DynamicValue::Reader& value) {
  switch (value.getType()) {
    case capnp::DynamicValue::STRUCT:
      return check_struct(value.as<capnp::DynamicStruct>());
    case capnp::DynamicValue::LIST: {
      auto list = value.as<capnp::DynamicList>();
      const auto element = list.getSchema().whichElementType();
      if (element != capnp::schema::Type::STRUCT && element != capnp::schema::Type::TEXT &&
          element != capnp::schema::Type::DATA && element != capnp::schema::Type::LIST &&
          element != capnp::schema::Type::ENUM) {
        return std::nullopt;  // numbers need no walk
      }
      for (capnp::DynamicValue::Reader item : list) {
        if (auto problem = check_value(item)) return problem;
      }
      return std::nullopt;
    }
    case capnp::DynamicValue::ENUM:
      if (value.as<capnp::DynamicEnum>().getEnumerant() == nullptr) return "unknown enumerant";
      return std::nullopt;
    default:
      return std::nullopt;  // reading text and data checks their bounds and the NUL
  }
}

}  // namespace

std::optional<std::string> find_problem(std::string_view bytes, capnp::StructSchema schema) {
  if (bytes.size() > max_record_bytes)
    return "more than " + std::to_string(max_record_bytes) + " bytes";
  if (bytes.size() < sizeof(capnp::word) || bytes.size() % sizeof(capnp::word) != 0) {
    return std::to_string(bytes.size()) + " bytes are no whole number of words";
  }
  const auto words = kj::arrayPtr(reinterpret_cast<const capnp::word*>(bytes.data()),
                                  bytes.size() / sizeof(capnp::word));
  std::optional<std::string> problem;
  auto failure = kj::runCatchingExceptions([&] {
    // Several pointers of a message may have the same target. The traversal limit, 8 times the size
    // of the message, bounds the walk.
    capnp::FlatArrayMessageReader reader(words, {.traversalLimitInWords = 8 * words.size() + 1024,
                                                 .nestingLimit = max_record_depth});
    if (reader.getEnd() != words.end()) {
      problem = "bytes follow the message's end";
      return;
    }
    problem = check_struct(reader.getRoot<capnp::DynamicStruct>(schema));
  });
  KJ_IF_MAYBE (exception, failure) {
    return std::string(exception->getDescription().cStr());
  }
  return problem;
}

}  // namespace hone
