#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "evaluation/devices.hpp"
#include "messages/schema/pipeline.capnp.h"
#include "tasks/corpus.hpp"
#include "tasks/task_file.hpp"

namespace hone {

// The device that a command without a run uses.
struct device_choice {
  std::string device = "cpu";
  bool share_cores = false;
  bool wait = false;
};
void add_device_options(CLI::App& command, device_choice& choice);
// Plans the device for at most `programs` programs; `node` names the command. Throws
// std::runtime_error if there is no such device.
planned_device plan_device(const device_choice& choice, const std::string& node,
                           std::size_t programs);

// How commands judge documents without a run.
struct judge_options : device_choice {
  std::uint64_t seed = 0;  // of the inputs; 0 for a random one
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
