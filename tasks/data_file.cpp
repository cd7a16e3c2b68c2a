#include "tasks/data_file.hpp"

#include <functional>
#include <map>
#include <mutex>
#include <utility>

namespace hone {

struct data_file::contents {
  explicit contents(std::string of) : bytes(std::move(of)) {}
  const std::string bytes;
  std::once_flag is_parsed;
  std::map<std::string, safetensor, std::less<>> tensors;  // by name; views into `bytes`
};

data_file::data_file(std::string name, std::string bytes)
    : name_(std::move(name)), contents_(std::make_shared<contents>(std::move(bytes))) {}

const std::string& data_file::bytes() const { return contents_->bytes; }

const safetensor* data_file::find(std::string_view tensor) const {
  contents& held = *contents_;
  std::call_once(held.is_parsed, [&held] {
    for (safetensor& one : parse_safetensors(held.bytes)) {
      std::string name = one.name;
      held.tensors.emplace(std::move(name), std::move(one));
    }
  });
  const auto found = held.tensors.find(tensor);
  return found == held.tensors.end() ? nullptr : &found->second;
}

bool data_file::operator==(const data_file& other) const {
  return name_ == other.name_ && (contents_ == other.contents_ || bytes() == other.bytes());
}

}  // namespace hone
