#include "tasks/safetensors.hpp"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <ostream>
#include <stdexcept>

#include "messages/plain_message.hpp"

namespace hone {
namespace {

constexpr std::uint64_t max_header_bytes = 100U << 20U;  // the format's own limit

[[noreturn]] void refuse(const std::string& problem) {
  throw std::runtime_error("safetensors: " + problem);
}

safetensor parse_entry(const std::string& name, const nlohmann::json& entry,
                       std::string_view body) {
  const auto complain = [&](const std::string& problem) {
    refuse("tensor " + name + ": " + problem);
  };
  if (!entry.is_object() || !entry.contains("dtype") || !entry["dtype"].is_string() ||
      !entry.contains("shape") || !entry["shape"].is_array() || !entry.contains("data_offsets") ||
      !entry["data_offsets"].is_array() || entry["data_offsets"].size() != 2) {
    complain("dtype, shape and two data_offsets expected");
  }
  safetensor tensor{
      .name = name, .dtype = entry["dtype"].get<std::string>(), .shape = {}, .bytes = {}};
  const std::size_t element = safetensors_element_bytes(tensor.dtype);
  if (element == 0) complain("unknown dtype " + tensor.dtype);
  std::uint64_t count = 1;
  for (const auto& size : entry["shape"]) {
    if (!size.is_number_unsigned()) complain("sizes must be whole numbers");
    const auto value = size.get<std::uint64_t>();
    if (value > (std::uint64_t{1} << 40U) ||
        (count != 0 && value > (std::uint64_t{1} << 48U) / std::max<std::uint64_t>(count, 1))) {
      complain("is too large");
    }
    count *= value;
    tensor.shape.push_back(static_cast<std::int64_t>(value));
  }
  const auto& offsets = entry["data_offsets"];
  if (!offsets[0].is_number_unsigned() || !offsets[1].is_number_unsigned())
    complain("data_offsets must be whole numbers");
  const auto begin = offsets[0].get<std::uint64_t>();
  const auto end = offsets[1].get<std::uint64_t>();
  if (begin > end || end > body.size()) {
    complain("bytes " + std::to_string(begin) + " to " + std::to_string(end) +
             " lie outside the file's " + std::to_string(body.size()) + " (truncated?)");
  }
  if (end - begin != count * element) {
    complain("has " + std::to_string(end - begin) + " bytes, its shape needs " +
             std::to_string(count * element));
  }
  tensor.bytes = body.substr(begin, end - begin);
  return tensor;
}

}  // namespace

std::size_t safetensors_element_bytes(std::string_view dtype) {
  if (dtype == "F64" || dtype == "I64" || dtype == "U64") return 8;
  if (dtype == "F32" || dtype == "I32" || dtype == "U32") return 4;
  if (dtype == "F16" || dtype == "BF16" || dtype == "I16" || dtype == "U16") return 2;
  if (dtype == "BOOL" || dtype == "U8" || dtype == "I8") return 1;
  return 0;
}

std::vector<safetensor> parse_safetensors(std::string_view file) {
  std::uint64_t header_bytes = 0;
  if (file.starts_with("version https://git-lfs"))
    refuse("is a pointer of Git LFS and not the file: git lfs pull fetches it");
  if (file.size() < sizeof header_bytes) refuse("shorter than its header");
  std::memcpy(&header_bytes, file.data(), sizeof header_bytes);
  if (header_bytes > max_header_bytes || header_bytes > file.size() - sizeof header_bytes) {
    refuse("header of " + std::to_string(header_bytes) + " bytes in a file of " +
           std::to_string(file.size()) + " (truncated?)");
  }
  const std::string_view header = file.substr(sizeof header_bytes, header_bytes);
  const std::string_view body = file.substr(sizeof header_bytes + header_bytes);
  nlohmann::json parsed;
  try {
    parsed = nlohmann::json::parse(header);
  } catch (const nlohmann::json::exception& e) {
    refuse(std::string("header is no JSON: ") + plain_message(e));
  }
  if (!parsed.is_object()) refuse("header is no JSON object");
  std::vector<safetensor> tensors;
  for (const auto& [name, entry] : parsed.items()) {
    if (name != "__metadata__") tensors.push_back(parse_entry(name, entry, body));
  }
  std::sort(tensors.begin(), tensors.end(), [](const safetensor& a, const safetensor& b) {
    return a.bytes.data() < b.bytes.data();
  });
  std::uint64_t covered = 0;
  for (const safetensor& tensor : tensors) {
    if (static_cast<std::uint64_t>(tensor.bytes.data() - body.data()) != covered &&
        !tensor.bytes.empty()) {
      refuse("tensor " + tensor.name + " leaves a gap or overlaps another");
    }
    covered += tensor.bytes.size();
  }
  if (covered != body.size())
    refuse(std::to_string(body.size() - covered) + " bytes belong to no tensor");
  return tensors;
}

void write_safetensors(std::ostream& out, const std::vector<safetensor>& tensors) {
  // transformers reads only files that say which framework wrote them.
  nlohmann::ordered_json header = {{"__metadata__", {{"format", "pt"}}}};
  std::uint64_t at = 0;
  for (const safetensor& tensor : tensors) {
    header[tensor.name] = {{"dtype", tensor.dtype},
                           {"shape", tensor.shape},
                           {"data_offsets", {at, at + tensor.bytes.size()}}};
    at += tensor.bytes.size();
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  const std::uint64_t size = text.size();
  out.write(reinterpret_cast<const char*>(&size), sizeof size);
  out << text;
  for (const safetensor& tensor : tensors)
    out.write(tensor.bytes.data(), static_cast<std::streamsize>(tensor.bytes.size()));
}

}  // namespace hone
