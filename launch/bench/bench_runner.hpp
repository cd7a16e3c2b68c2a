#pragma once

#include <functional>
#include <vector>

#include "evaluation/devices.hpp"
#include "launch/bench/bench_plan.hpp"
#include "launch/bench/bench_results.hpp"

namespace hone {

// Called after each judged document, on the thread of its device, by one thread at a time. `done`
// counts the documents of this run, of `total` that it has to judge.
using bench_listener =
    std::function<void(std::size_t done, std::size_t total, const bench_task& t,
                       const bench_document& document, const schema::Evaluation::Reader& result)>;

// Judges the documents of a plan, to a depth, unless `results` contains them at this
// depth. Each device has a thread.
// Every device type judges every document. Devices of one type share the tasks: a device takes all
// documents of a task one after another, so that what it knows of the task serves all of them. What
// ends as `infrastructure` is judged once more.
// Throws std::runtime_error if a device cannot be made or can judge no longer; the other devices
// have then judged all that they could.
void run_bench(const bench_plan& plan, const std::vector<planned_device>& devices,
               bench_results& results, evaluation_depth depth, const bench_listener& listener);

}  // namespace hone
