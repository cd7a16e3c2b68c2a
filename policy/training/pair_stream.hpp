#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "policy/text/prompt.hpp"
#include "policy/text/text_codec.hpp"
#include "policy/training/trainer.hpp"
#include "tasks/teaching/lesson_source.hpp"

namespace hone {

// Training pairs (prompt, document) of an endless stream of lessons, which nothing has judged. The
// prompt of a lesson's contrast shows the two variants that the document compares. Each
// of some threads reads lessons and turns them into tokens ahead of the trainer. Pairs are drawn in
// blocks of lessons, in a random order that depends on the seed and the block alone, so the place
// in the stream is the whole state of the draws, whatever the number of threads. Functions must be
// called by one thread at a time.
class pair_stream {
 public:
  // Returns the source of the lessons `first`, `first` + `step`, ...
  using open_source =
      std::function<std::unique_ptr<lesson_source>(std::uint64_t first, std::uint64_t step)>;
  struct options {
    std::size_t threads = 1;  // each with a source
    std::uint64_t seed = 1;
    std::string device_type;  // that prompts name
    // Most tokens of a pair; longer ones are left out. 0: no limit.
    std::size_t context = 0;
  };
  // Counts of the lessons so far, and the time that next() has waited for them.
  struct counts {
    std::uint64_t lessons = 0;
    std::uint64_t skipped = 0;   // numbers without a task
    std::uint64_t too_long = 0;  // pairs that were left out
    std::uint64_t pairs = 0;     // drawn
    double waited_s = 0;
  };
  static constexpr std::uint64_t lessons_of_block = 64;

  // `codec` and `prompts` must outlive the stream.
  pair_stream(open_source open, const text_codec& codec, const prompt_template& prompts,
              const options& o);
  ~pair_stream();
  pair_stream(const pair_stream&) = delete;
  pair_stream& operator=(const pair_stream&) = delete;

  // Returns the next pair. The first call starts the threads. Throws std::runtime_error if a source
  // fails.
  sft_example next();
  const counts& so_far() const { return counts_; }

  // The place in the stream. restore() must come before the first next().
  std::string state() const;
  void restore(const std::string& state);

 private:
  // The pairs of one lesson.
  struct prepared {
    std::uint64_t number = 0;
    std::vector<sft_example> pairs;
    bool is_skipped = false;
    std::uint64_t too_long = 0;
  };
  // What one thread has prepared, in order of the lessons.
  struct lane {
    std::deque<prepared> ready;
    std::exception_ptr failure;
  };

  void start();
  void work(std::size_t thread);
  prepared prepare(const lesson& of) const;
  prepared take(std::uint64_t number);
  void take_block();

  open_source open_;
  const text_codec* codec_;
  const prompt_template* prompts_;
  options options_;
  counts counts_;
  std::uint64_t block_ = 0;         // that `pairs_` are of
  std::size_t drawn_ = 0;           // pairs of the block that were drawn
  std::vector<sft_example> pairs_;  // of the block
  bool has_block_ = false;
  std::uint64_t first_ = 0;  // lesson that the threads began with

  std::mutex lock_;  // of what follows
  std::condition_variable changed_;
  std::vector<lane> lanes_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace hone
