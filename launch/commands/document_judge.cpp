#include "launch/commands/document_judge.hpp"

#include <atomic>
#include <future>

#include "evaluation/evaluate.hpp"
#include "launch/core_wait.hpp"
#include "launch/slow_notice.hpp"

namespace hone {

void add_device_options(CLI::App& command, device_choice& choice) {
  command.add_option("--device", choice.device, "cpu, cuda or cuda:NUMBER")->capture_default_str();
  command.add_flag("--share-cores", choice.share_cores,
                   "judge on a core that others use as well, which makes times meaningless");
  command.add_flag("--wait", choice.wait,
                   "wait until a run or another command releases the GPU or a processor core");
}

planned_device plan_device(const device_choice& choice, const std::string& node,
                           std::size_t programs) {
  return plan_device(choice.device, {.node = node,
                                     .share_cores = choice.share_cores,
                                     .begin_to_wait = core_wait(choice.wait),
                                     .programs = programs});
}

void add_judge_options(CLI::App& command, judge_options& options) {
  add_device_options(command, options);
  command.add_option("--seed", options.seed,
                     "draw the inputs from this seed, to repeat a verification");
}

void judge_documents(
    const judge_options& options, const std::vector<document_of_task>& documents,
    const std::function<void(const document_of_task&, const schema::Evaluation::Reader&)>& each) {
  const planned_device planned = plan_device(options, "eval", documents.size());
  compile_ahead compiler(*planned.type);
  std::vector<std::future<compiled_document>> compiled;
  for (const auto& [of, document] : documents)
    compiled.push_back(compiler.submit(document.text, *of));
  const auto device = [&] {
    const slow_notice notice([&] { return "opening the device " + planned.name; });
    return planned.make();
  }();
  for (std::size_t i = 0; i < documents.size(); ++i) {
    const document_of_task& one = documents[i];
    std::atomic<const char*> part = "compiling";
    const slow_notice notice([&] { return std::string(part.load()) + " " + one.document.name; });
    const auto evaluation = evaluate(*device, compiled[i].get(), *one.of, evaluation_depth::full,
                                     options.seed, [&](const char* begun) { part = begun; });
    each(one, *evaluation);
  }
}

}  // namespace hone
