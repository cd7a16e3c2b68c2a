#include "launch/bench/bench_runner.hpp"

#include <deque>
#include <exception>
#include <future>
#include <mutex>
#include <thread>
#include <utility>

#include "evaluation/evaluate.hpp"
#include "messages/names.hpp"

namespace hone {
namespace {

std::string type_of(const planned_device& device) {
  return std::string(view(device.type->getName()));
}

// The documents of a plan that are still to be judged, by device type, and who reports of them.
// Safe on any thread.
class bench_work {
 public:
  bench_work(const bench_plan& plan, const std::vector<std::string>& types, bench_results& results,
             evaluation_depth depth, const bench_listener& listener)
      : plan_(&plan), results_(&results), depth_(depth), listener_(&listener) {
    for (const std::string& type : types) {
      next_[type] = 0;
      for (const bench_task& t : plan.tasks) {
        for (const bench_document& document : t.documents)
          total_ += results.contains(bench_key(type, document, depth)) ? 0 : 1;
      }
    }
  }

  // Returns a task that no device of this type has taken, or null if there is none.
  const bench_task* take(const std::string& type) {
    const std::lock_guard lock(mutex_);
    std::size_t& next = next_.at(type);
    return next < plan_->tasks.size() ? &plan_->tasks[next++] : nullptr;
  }

  // Returns the documents of a task that are still to be judged.
  std::vector<const bench_document*> documents_of(const bench_task& t,
                                                  const std::string& type) const {
    std::vector<const bench_document*> documents;
    for (const bench_document& one : t.documents) {
      if (!results_->contains(bench_key(type, one, depth_))) documents.push_back(&one);
    }
    return documents;
  }

  void add(const bench_task& t, const std::string& type, const bench_document& document,
           const schema::Evaluation::Reader& evaluation) {
    results_->add(bench_key(type, document, depth_), t, document, evaluation);
    const std::lock_guard lock(mutex_);
    (*listener_)(++done_, total_, t, document, evaluation);
  }

  evaluation_depth depth() const { return depth_; }

  void fail(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
  }
  void throw_first_error() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  const bench_plan* plan_;
  bench_results* results_;
  evaluation_depth depth_;
  const bench_listener* listener_;
  std::mutex mutex_;
  std::map<std::string, std::size_t> next_;  // task, by device type
  std::size_t done_ = 0;
  std::size_t total_ = 0;
  std::exception_ptr error_;
};

// A document that is being compiled or has been.
struct submitted_document {
  const bench_task* of;
  const bench_document* document;
  std::future<compiled_document> compiled;
};

// Judges a document, and once more if the infrastructure has failed, which says nothing of it.
record<schema::Evaluation> judge(device& on, const compiled_document& document, const task& t,
                                 evaluation_depth depth) {
  const auto judge_once = [&] { return evaluate(on, document, t, depth); };
  auto evaluation = judge_once();
  return evaluation->getOutcome() == Outcome::INFRASTRUCTURE ? judge_once() : evaluation;
}

// Judges tasks on one device until there are none left. The documents of the next task are compiled
// while those of a task are judged.
void judge_tasks(bench_work& work, const planned_device& planned) {
  const std::string type = type_of(planned);
  compile_ahead compiler(*planned.type);
  const auto submit_next = [&] {
    std::deque<submitted_document> documents;
    while (documents.empty()) {
      const bench_task* const t = work.take(type);
      if (t == nullptr) break;
      for (const bench_document* one : work.documents_of(*t, type))
        documents.push_back({t, one, compiler.submit(one->text, t->of)});
    }
    return documents;
  };
  auto next = submit_next();
  const auto device = planned.make();
  while (!next.empty()) {
    auto documents = std::exchange(next, submit_next());
    for (auto& [of, document, compiled] : documents)
      work.add(*of, type, *document, *judge(*device, compiled.get(), of->of, work.depth()));
  }
}

}  // namespace

void run_bench(const bench_plan& plan, const std::vector<planned_device>& devices,
               bench_results& results, evaluation_depth depth, const bench_listener& listener) {
  bench_work work(plan, device_types_of(devices), results, depth, listener);
  std::vector<std::thread> threads;
  for (const planned_device& planned : devices) {
    threads.emplace_back([&work, &planned] {
      try {
        judge_tasks(work, planned);
      } catch (...) {
        work.fail(std::current_exception());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  work.throw_first_error();
}

}  // namespace hone
