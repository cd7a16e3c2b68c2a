#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hone::testing_support {

// The result of a strict parser of markup.
struct markup {
  std::string error;               // the first violation, or empty
  std::string text;                // the text with entities resolved
  std::vector<std::string> tags;   // the names of all elements in order
  std::vector<std::string> links;  // the values of all href attributes
};

// Parses a document or an element. Accepts only the builder's output format: named entities,
// quoted attributes without repetition, balanced tags, no <script>, no event handlers, and valid
// UTF-8 without control characters, bidirectional controls and line separators.
markup parsed(std::string_view source);

// Texts that break careless pages.
const std::vector<std::string>& hostile_texts();

}  // namespace hone::testing_support
