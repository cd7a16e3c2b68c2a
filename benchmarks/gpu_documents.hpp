#pragma once

#include <condition_variable>
#include <deque>
#include <filesystem>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "evaluation/backends/device.hpp"
#include "evaluation/judge/random_values.hpp"
#include "evaluation/variant_compiler.hpp"
#include "messages/ids.hpp"
#include "tasks/variant_document.hpp"
#include "tests/support/evaluator.hpp"
#include "tests/support/honest_set.hpp"

namespace hone::benchmark {

// Documents of configs/gpu and their way through the judge, for the modes of gpu_benchmark.

// A document with its compile job and, once it has been compiled, its artifact or failure.
struct compiled_document {
  const task* of = nullptr;  // not owned
  std::string name;          // "TASK/DOCUMENT"
  record<schema::CompileJob> job;
  program_result<record<schema::Artifact>> result = failed(program_failure{});
};

// Owns the documents of a GPU corpus, one per corpus file, and their tasks. The constructor reads
// CONFIGS/gpu. Immutable; safe on any thread.
class gpu_corpus {
 public:
  explicit gpu_corpus(const std::filesystem::path& configs)
      : set_(testing_support::load_honest_set(configs / "gpu", 1, 1)) {}
  std::size_t size() const { return set_.documents.size(); }

  // Returns document i modulo size(), not compiled yet, for the type of device `on`. From i =
  // size() on the blocks carry a comment with `i`: the variant does the same but is a new one, so
  // that no cache holds it. The result points to a task of this corpus. Throws std::runtime_error
  // if the document does not parse.
  compiled_document document(std::size_t i, const device& on) const {
    const corpus_document& source = set_.documents[i % size()];
    std::string text = source.text;
    if (i >= size()) {
      if (const auto end = text.rfind("\n```"); end != std::string::npos)
        text.insert(end, "\n# " + std::to_string(i));
      if (const auto cuda = text.find("```cuda\n"); cuda != std::string::npos)
        text.insert(cuda + 8, "// " + std::to_string(i) + "\n");
    }
    compiled_document one;
    one.of = &set_.tasks.at(source.task);
    one.name = source.task + "/" + source.name;
    const auto variant = make_variant(one.of->id, text);
    if (variant->getProblem().size() > 0)
      throw std::runtime_error(one.name + ": " + variant->getProblem().cStr());
    one.job = make_compile_job(*variant, on.type()->getName().cStr());
    return one;
  }

 private:
  testing_support::honest_set set_;
};

// The end of a document's way through the judge. Times are 0 if they were not taken.
struct judged {
  record<schema::Verdict> verdict;  // absent if the document did not compile
  Outcome outcome = Outcome::INFRASTRUCTURE;
  std::string message;
  double score = 0;
  double raw = 0;           // the score before rounding
  double reference_us = 0;  // time per call, first timed case
  double candidate_us = 0;  // time per call, first timed case
  // Time per call of the burst during which any kernel ran, by CUPTI; first timed case.
  double busy_us = 0;
  // Host-side time per call that the device clock does not show, candidate minus reference; first
  // timed case.
  double unseen_us = 0;
  double verify_ms = 0;   // duration of the verification
  double measure_ms = 0;  // duration of the measurements
};

// Verifies a compiled document on device `on` with random inputs. Throws std::runtime_error only if
// the device itself cannot go on.
inline judged verified(device& on, const compiled_document& one) {
  judged result;
  if (!one.result) {
    result.outcome = one.result.error().outcome;
    result.message = one.result.error().message;
    return result;
  }
  record_builder<schema::VerifyJob> job;
  job->setHeader(one.job->getHeader());
  job->setArtifact(*one.result.value());
  result.verdict = on.verify(*job.finish(), *one.of, 0);
  result.outcome = result.verdict->getOutcome();
  result.message = result.verdict->getMessage().cStr();
  result.verify_ms = result.verdict->getVerifyMs();
  return result;
}

// Verifies and measures a compiled document, and measures it again if its score needs confirmation,
// as the verifier and the benchmarker do; a screening is one short measurement. Throws
// std::runtime_error only if the device itself cannot go on.
inline judged judge(device& on, const compiled_document& one, bool is_screening = false) {
  judged result = verified(on, one);
  if (result.outcome != Outcome::OK) return result;
  record_builder<schema::BenchmarkJob> job;
  job->setHeader(one.job->getHeader());
  job->setArtifact(*one.result.value());
  job->setVerdict(*result.verdict);
  job->getHeader().setScreened(is_screening);
  auto measurement = on.measure(*job.finish(), *one.of, 0);
  result.measure_ms = measurement->getMeasureMs();
  if (device::needs_confirmation(*measurement, 0)) {
    job->setFirst(*measurement);
    measurement = on.measure(*job.finish(), *one.of, 0);
    result.measure_ms += device::last_measure_ms(*measurement);
  }
  result.score = measurement->getScore();
  result.raw = measurement->getScoreRaw();
  if (const auto cases = measurement->getCases(); cases.size() > 0) {
    result.reference_us = cases[0].getReferenceUs();
    result.candidate_us = cases[0].getCandidateUs();
    result.busy_us = cases[0].getBurstBusyUs();
    result.unseen_us = cases[0].getUnseenUs();
  }
  result.outcome = measurement->getOutcome();
  result.message = measurement->getMessage().cStr();
  return result;
}

// Compiles `count` documents of a corpus ahead of the judge, on a thread that it owns. The first
// pass over the corpus is in a fixed random order, which mixes tasks. At most eight compiled
// documents wait to be taken. `corpus` and `on` must outlive the object.
class compiling_ahead {
 public:
  compiling_ahead(const gpu_corpus& corpus, const device& on, std::size_t count)
      : thread_([this, &corpus, &on, count] { compile(corpus, on, count); }) {}
  ~compiling_ahead() {
    {
      const std::scoped_lock lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  // Waits for the next compiled document and removes it. May be called `count` times.
  compiled_document next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !ready_.empty(); });
    compiled_document one = std::move(ready_.front());
    ready_.pop_front();
    changed_.notify_all();
    return one;
  }

 private:
  void compile(const gpu_corpus& corpus, const device& on, std::size_t count) {
    variant_compiler compiler;
    std::vector<std::size_t> order(std::max(count, corpus.size()));
    std::iota(order.begin(), order.end(), std::size_t{0});
    random_stream random(1);
    for (std::size_t i = corpus.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    for (std::size_t i = 0; i < count; ++i) {
      compiled_document one = corpus.document(order[i], on);
      one.result = compiler.compile(*one.job, *one.of, *on.type());
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return ready_.size() < 8 || stop_; });
      if (stop_) return;
      ready_.push_back(std::move(one));
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<compiled_document> ready_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace hone::benchmark
