#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tasks/format_error.hpp"

namespace hone {

// One variant document of a corpus file, with the values of the file's sweep filled in.
struct corpus_document {
  std::string task;  // name of the task, which is the name of the file's folder
  std::string name;  // the file's name and the sweep's values: "tiled BLOCK=64 ITEMS=2"
  std::string text;
  std::string file{};  // where it is written
};

// Return the documents that a corpus file defines. A corpus file is a variant document, whose
// first line may be a sweep such as
//   sweep: BLOCK = 64 128 256, ITEMS = 1 2 4
// With a sweep, the file defines one document per combination of values, in which ${BLOCK} and
// ${ITEMS} are replaced. A sweep may have 1000 characters and define 1000 documents of 64 MiB
// together. Throw format_error, with `file` in the message, if the file cannot be read, if its
// sweep is malformed, too large or has a name that the text does not use, or if a ${...} has no
// value.
std::vector<corpus_document> expand_corpus_file(const std::filesystem::path& file);
std::vector<corpus_document> expand_corpus_text(const std::string& text, const std::string& file,
                                                const std::string& task, const std::string& name);

// Returns the documents of all *.md files below `folder`, sorted by path. Each file lies in a
// folder that is named after its task. Throws format_error, also if `folder` does not exist.
std::vector<corpus_document> load_corpus(const std::filesystem::path& folder);

}  // namespace hone
