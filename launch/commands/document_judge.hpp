#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "messages/schema/pipeline.capnp.h"
#include "tasks/corpus.hpp"
#include "tasks/task_file.hpp"

namespace hone {

// How commands judge documents without a run.
struct judge_options {
  std::string device = "cpu";
  std::uint64_t seed = 0;  // of the inputs; 0 for a random one
  bool share_cores = false;
  bool wait = false;
};
// Adds the options of a command that judges documents.
void add_judge_options(CLI::App& command, judge_options& options);

struct document_of_task {
  const task* of = nullptr;
  corpus_document document;
};
// Judges documents in order, as `options` say, and calls `each` with every evaluation. Says on
// standard error what it is at if that takes long. Throws std::runtime_error if there is no such
// device.
void judge_documents(
    const judge_options& options, const std::vector<document_of_task>& documents,
    const std::function<void(const document_of_task&, const schema::Evaluation::Reader&)>& each);

}  // namespace hone
