#include "messages/validation.hpp"

#include <capnp/any.h>
#include <capnp/serialize.h>
#include <kj/exception.h>

#include <cstdint>
#include <cstring>
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

constexpr std::uint16_t no_union = capnp::schema::Field::NO_DISCRIMINANT;

// What has to be looked at in a struct. Every bit pattern of a number or a flag is a value.
struct checked_field {
  std::string name;
  std::uint16_t member = no_union;  // the field's number in the struct's union
};
struct checked_pointer : checked_field {
  unsigned index = 0;  // in the struct's pointer section
  capnp::Type type;
  bool is_required = false;
};
struct checked_enumerant : checked_field {
  unsigned offset = 0;  // in the struct's data section, in units of 2 bytes
  std::uint16_t default_value = 0;
  std::size_t count = 0;  // of the enumerants that are known
};
struct struct_plan {
  unsigned union_offset = 0;  // of the number of the union's member, in units of 2 bytes
  std::vector<checked_pointer> pointers;
  std::vector<checked_enumerant> enumerants;
};

struct_plan make_plan(capnp::StructSchema schema) {
  struct_plan plan;
  plan.union_offset = schema.getProto().getStruct().getDiscriminantOffset();
  for (capnp::StructSchema::Field field : schema.getFields()) {
    const auto proto = field.getProto();
    const capnp::Type type = field.getType();
    KJ_REQUIRE(proto.isSlot() && !type.isAnyPointer() && !type.isInterface(),
               "fields of this kind are not checked", proto.getName());
    const auto slot = proto.getSlot();
    const checked_field one{std::string(proto.getName().cStr()), proto.getDiscriminantValue()};
    if (type.isEnum()) {
      plan.enumerants.push_back({one, slot.getOffset(), slot.getDefaultValue().getEnum(),
                                 type.asEnum().getEnumerants().size()});
    } else if (type.isText() || type.isData() || type.isStruct() || type.isList()) {
      plan.pointers.push_back({one, slot.getOffset(), type, is_required(field)});
    }
  }
  return plan;
}

// Schemas are looked through once per thread, because that takes longer than the check of a record.
const struct_plan& plan_of(capnp::StructSchema schema) {
  thread_local std::unordered_map<std::uint64_t, struct_plan> known;
  const std::uint64_t id = schema.getProto().getId();
  if (const auto found = known.find(id); found != known.end()) return found->second;
  return known.emplace(id, make_plan(schema)).first->second;
}

// Returns the 2 bytes at an offset of a data section, or 0 where an older program has written none.
std::uint16_t number_at(kj::ArrayPtr<const kj::byte> data, unsigned offset) {
  std::uint16_t value = 0;
  const std::size_t at = offset * sizeof value;
  if (at + sizeof value <= data.size()) std::memcpy(&value, data.begin() + at, sizeof value);
  return value;
}

std::optional<std::string> check_pointer(capnp::AnyPointer::Reader pointer, capnp::Type type);

std::optional<std::string> check_struct(capnp::AnyStruct::Reader reader,
                                        capnp::StructSchema schema) {
  const struct_plan& plan = plan_of(schema);
  const auto pointers = reader.getPointerSection();
  const auto data = reader.getDataSection();
  const std::uint16_t member = number_at(data, plan.union_offset);
  const auto is_there = [&](const checked_field& one) {
    return one.member == no_union || one.member == member;
  };
  unsigned checked = 0;
  for (const checked_pointer& one : plan.pointers) {
    if (!is_there(one) || one.index >= pointers.size() || pointers[one.index].isNull()) {
      if (one.is_required) return "field " + one.name + " is missing";
      continue;
    }
    if (auto problem = check_pointer(pointers[one.index], one.type))
      return one.name + ": " + *problem;
    ++checked;
  }
  // Copying a record follows all of its pointers, also those that no field names.
  unsigned all = 0;
  for (capnp::AnyPointer::Reader pointer : pointers) all += pointer.isNull() ? 0 : 1;
  if (all != checked) return "pointers that are no fields";
  for (const checked_enumerant& one : plan.enumerants) {
    if (is_there(one) && (number_at(data, one.offset) ^ one.default_value) >= one.count)
      return one.name + ": unknown enumerant";
  }
  return std::nullopt;
}

// Returns how a list of a type stores its elements. (Cap'n Proto reads lists of numbers, texts and
// lists also from structs, which may have further pointers.)
capnp::ElementSize size_of_element(capnp::Type type) {
  switch (type.which()) {
    case capnp::schema::Type::VOID:
      return capnp::ElementSize::VOID;
    case capnp::schema::Type::BOOL:
      return capnp::ElementSize::BIT;
    case capnp::schema::Type::INT8:
    case capnp::schema::Type::UINT8:
      return capnp::ElementSize::BYTE;
    case capnp::schema::Type::INT16:
    case capnp::schema::Type::UINT16:
    case capnp::schema::Type::ENUM:
      return capnp::ElementSize::TWO_BYTES;
    case capnp::schema::Type::INT32:
    case capnp::schema::Type::UINT32:
    case capnp::schema::Type::FLOAT32:
      return capnp::ElementSize::FOUR_BYTES;
    case capnp::schema::Type::INT64:
    case capnp::schema::Type::UINT64:
    case capnp::schema::Type::FLOAT64:
      return capnp::ElementSize::EIGHT_BYTES;
    case capnp::schema::Type::STRUCT:
      return capnp::ElementSize::INLINE_COMPOSITE;
    default:
      return capnp::ElementSize::POINTER;
  }
}

std::optional<std::string> check_list(const capnp::AnyList::Reader& list, capnp::Type element) {
  const capnp::ElementSize size = size_of_element(element);
  if (list.getElementSize() != size) return "a list of other elements";
  if (size == capnp::ElementSize::INLINE_COMPOSITE) {
    for (capnp::AnyStruct::Reader item : list.as<capnp::List<capnp::AnyStruct>>()) {
      if (auto problem = check_struct(item, element.asStruct())) return problem;
    }
  } else if (size == capnp::ElementSize::POINTER) {
    for (capnp::AnyPointer::Reader item : list.as<capnp::List<capnp::AnyPointer>>()) {
      if (item.isNull()) continue;
      if (auto problem = check_pointer(item, element)) return problem;
    }
  } else if (element.isEnum()) {
    const std::size_t known = element.asEnum().getEnumerants().size();
    for (const std::uint16_t item : list.as<capnp::List<std::uint16_t>>()) {
      if (item >= known) return "unknown enumerant";
    }
  }
  return std::nullopt;
}

std::optional<std::string> check_pointer(capnp::AnyPointer::Reader pointer, capnp::Type type) {
  if (type.isStruct()) return check_struct(pointer.getAs<capnp::AnyStruct>(), type.asStruct());
  if (type.isList())
    return check_list(pointer.getAs<capnp::AnyList>(), type.asList().getElementType());
  // Reading text and data checks their bounds and the NUL.
  if (type.isText()) (void)pointer.getAs<capnp::Text>();
  if (type.isData()) (void)pointer.getAs<capnp::Data>();
  return std::nullopt;
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
    capnp::FlatArrayMessageReader reader(
        words,
        {.traversalLimitInWords = max_words_read(words.size()), .nestingLimit = max_record_depth});
    if (reader.getEnd() != words.end()) {
      problem = "bytes follow the message's end";
      return;
    }
    problem = check_struct(reader.getRoot<capnp::AnyStruct>(), schema);
  });
  KJ_IF_MAYBE (exception, failure) {
    return std::string(exception->getDescription().cStr());
  }
  return problem;
}

}  // namespace hone
