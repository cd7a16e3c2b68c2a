#include "policy/training/pair_stream.hpp"

#include <algorithm>
#include <chrono>
#include <random>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "messages/record.hpp"
#include "messages/schema/variant.capnp.h"
#include "tasks/task_file.hpp"
#include "tasks/variant_document.hpp"

namespace hone {
namespace {

// Lessons that each thread prepares ahead of the trainer.
constexpr std::size_t max_ready = 2 * pair_stream::lessons_of_block;

shown_variant shown_document(double score, const std::string& text) {
  const auto parsed = parse_variant_document(text);
  if (const auto* problem = std::get_if<parse_problem>(&parsed))
    throw std::runtime_error("a document of the stream does not parse: " + to_string(*problem));
  const auto& document = std::get<variant_document>(parsed);
  return show_variant(score, document.options, document.cuda, document.python);
}

}  // namespace

pair_stream::pair_stream(open_source open, const text_codec& codec, const prompt_template& prompts,
                         const options& o)
    : open_(std::move(open)), codec_(&codec), prompts_(&prompts), options_(o) {
  options_.threads = std::max<std::size_t>(1, options_.threads);
}

pair_stream::~pair_stream() {
  {
    const std::lock_guard hold(lock_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& one : threads_) one.join();
}

std::string pair_stream::state() const {
  return std::to_string(block_) + " " + std::to_string(drawn_);
}

void pair_stream::restore(const std::string& state) {
  if (!threads_.empty()) throw std::logic_error("the stream has begun");
  std::istringstream(state) >> block_ >> drawn_;
}

void pair_stream::start() {
  lanes_.resize(options_.threads);
  first_ = block_ * lessons_of_block;
  for (std::size_t i = 0; i < options_.threads; ++i) threads_.emplace_back([this, i] { work(i); });
}

void pair_stream::work(std::size_t thread) {
  try {
    const auto source = open_(first_ + thread, options_.threads);
    for (;;) {
      {
        std::unique_lock hold(lock_);
        changed_.wait(hold, [&] { return stopping_ || lanes_[thread].ready.size() < max_ready; });
        if (stopping_) return;
      }
      prepared made = prepare(source->next());
      const std::lock_guard hold(lock_);
      lanes_[thread].ready.push_back(std::move(made));
      changed_.notify_all();
    }
  } catch (...) {
    const std::lock_guard hold(lock_);
    lanes_[thread].failure = std::current_exception();
    changed_.notify_all();
  }
}

pair_stream::prepared pair_stream::prepare(const lesson& of) const {
  prepared made;
  made.number = of.number;
  made.is_skipped = !of.skipped.empty();
  if (made.is_skipped) return made;
  record_builder<schema::Draw> empty;
  empty->setDeviceType(options_.device_type);
  prompt_facts facts = facts_for(parse_task(of.task, of.name), *empty.finish());
  const auto add = [&](const std::string& document) {
    sft_example pair{codec_->encode_prompt(prompts_->render(facts)),
                     codec_->encode_answer(document)};
    if (options_.context > 0 && pair.prompt.size() + pair.completion.size() > options_.context) {
      ++made.too_long;
    } else {
      made.pairs.push_back(std::move(pair));
    }
  };
  for (const std::string& document : of.documents) add(document);
  if (of.contrast) {
    for (const auto& [estimate, document] : of.contrast->shown)
      facts.exemplars.push_back(shown_document(estimate, document));
    add(of.contrast->document);
  }
  return made;
}

// Returns the pairs of a lesson, of which the thread of its number has prepared all before it.
pair_stream::prepared pair_stream::take(std::uint64_t number) {
  std::unique_lock hold(lock_);
  lane& from = lanes_[(number - first_) % lanes_.size()];
  if (from.ready.empty() && !from.failure) {
    const auto before = std::chrono::steady_clock::now();
    changed_.wait(hold, [&] { return !from.ready.empty() || from.failure; });
    counts_.waited_s +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
  }
  if (from.ready.empty()) std::rethrow_exception(from.failure);
  prepared taken = std::move(from.ready.front());
  from.ready.pop_front();
  changed_.notify_all();
  if (taken.number != number)
    throw std::runtime_error("the stream of synthesised tasks gave lesson " +
                             std::to_string(taken.number) + " instead of " +
                             std::to_string(number));
  return taken;
}

void pair_stream::take_block() {
  pairs_.clear();
  for (std::uint64_t i = 0; i < lessons_of_block; ++i) {
    prepared one = take(block_ * lessons_of_block + i);
    ++counts_.lessons;
    counts_.skipped += one.is_skipped ? 1 : 0;
    counts_.too_long += one.too_long;
    for (sft_example& pair : one.pairs) pairs_.push_back(std::move(pair));
  }
  std::seed_seq seeds{options_.seed, block_};
  std::mt19937_64 random(seeds);
  std::shuffle(pairs_.begin(), pairs_.end(), random);
}

sft_example pair_stream::next() {
  if (threads_.empty()) start();
  constexpr int max_empty_blocks = 16;
  for (int empty = 0; !has_block_ || drawn_ >= pairs_.size(); ++empty) {
    if (empty > max_empty_blocks)
      throw std::runtime_error("the stream of synthesised tasks has no documents");
    if (has_block_) {
      ++block_;
      drawn_ = 0;
    }
    take_block();
    has_block_ = true;
  }
  ++counts_.pairs;
  return std::move(pairs_[drawn_++]);
}

}  // namespace hone
