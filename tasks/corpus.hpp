#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tasks/format_error.hpp"

namespace hone {

// One variant document of a corpus, with what its sweep stands for filled in.
struct corpus_document {
  std::string task;  // name: the folder that the file lies in
  std::string name;  // the file's name, and the sweep's values: "tiled BLOCK=64 ITEMS=2"
  std::string text;
};

// A corpus file is a variant document, before which a line may say
//   sweep: BLOCK = 64 128 256, ITEMS = 1 2 4
// and then stands for one document for each combination, with ${BLOCK} and ${ITEMS} replaced.
// Throws format_error for a sweep that is malformed, has a name that the text does not use, or
// leaves a ${...} without a value.
std::vector<corpus_document> expand_corpus_file(const std::filesystem::path& file);
std::vector<corpus_document> expand_corpus_text(const std::string& text, const std::string& file,
                                                const std::string& task, const std::string& name);

// All *.md of a folder's folders, each of which is named after its task; by task and name.
std::vector<corpus_document> load_corpus(const std::filesystem::path& folder);

}  // namespace hone
