#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace hone {

// A cache of the `kept` most recently used values, by key. Confined to one thread.
template <typename Value>
class recently_used {
 public:
  explicit recently_used(std::size_t kept) : kept_(kept) {}

  // Returns a copy of the value, and marks it as used.
  std::optional<Value> find(const std::string& key) {
    const auto found = places_.find(key);
    if (found == places_.end()) return std::nullopt;
    all_.splice(all_.begin(), all_, found->second);
    return found->second->second;
  }

  // Stores a copy of the value. Removes the least recently used value if there are too many.
  void keep(const std::string& key, const Value& value) {
    if (find(key)) {
      all_.front().second = value;
      return;
    }
    all_.emplace_front(key, value);
    places_[key] = all_.begin();
    if (all_.size() <= kept_) return;
    places_.erase(all_.back().first);
    all_.pop_back();
  }

 private:
  std::size_t kept_;
  std::list<std::pair<std::string, Value>> all_;  // most recently used first
  std::map<std::string, typename std::list<std::pair<std::string, Value>>::iterator> places_;
};

}  // namespace hone
