#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "tasks/safetensors.hpp"

namespace hone {

// The name and the bytes of a task's data file, a safetensors file. Copies share the bytes and
// the facts known of them. All functions may be called from several threads.
class data_file {
 public:
  data_file(std::string name, std::string bytes);
  const std::string& name() const { return name_; }
  const std::string& bytes() const;
  // Returns the tensor of this name, or nullptr if there is none. The result lives as long as any
  // copy of this object. The first call parses the file's header. Throws std::runtime_error if the
  // file is damaged.
  const safetensor* find(std::string_view tensor) const;
  bool operator==(const data_file& other) const;

 private:
  struct contents;
  std::string name_;
  std::shared_ptr<contents> contents_;
};

}  // namespace hone
