#pragma once

#include <caf/all.hpp>

#include <string>

namespace hone {

// Returns the text that an error was made with, or what has happened in words: CAF's own rendering
// is for programmers.
std::string text_of(const caf::actor_system& system, const caf::error& error);

}  // namespace hone
