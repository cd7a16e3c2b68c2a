#include "tasks/habitual_imports.hpp"

#include <regex>
#include <sstream>

namespace hone {

std::string without_habitual_imports(const std::string& python) {
  static const std::regex habitual(
      R"(^(import torch|import math|import torch\.nn\.functional as F|import torch\.nn as nn)"
      R"(|from torch import Tensor|from typing import [A-Za-z, ]+)"
      R"(|from torch\.nn import functional as F|from __future__ import annotations)\s*(#.*)?$)");
  // <regex> takes a frame of the stack for each character. A longer line is kept.
  constexpr std::size_t longest = 200;
  std::istringstream in(python);
  std::string kept;
  for (std::string line; std::getline(in, line);)
    kept += (line.size() <= longest && std::regex_match(line, habitual) ? "" : line) + "\n";
  return kept;
}

}  // namespace hone
