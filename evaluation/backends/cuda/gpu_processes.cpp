#include "evaluation/backends/cuda/gpu_processes.hpp"

#include <cstdlib>
#include <sstream>
#include <utility>

namespace hone {
namespace {

// Returns the CUDA_VISIBLE_DEVICES entry of the GPU that has the number `ordinal` in this process.
std::string visible_device(int ordinal) {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (visible == nullptr) return std::to_string(ordinal);
  std::istringstream in(visible);
  std::string name;
  for (int i = 0; i <= ordinal && std::getline(in, name, ','); ++i) {
  }
  return name;
}

}  // namespace

gpu_processes::gpu_processes(const gpu_facts& facts, std::size_t spares,
                             std::filesystem::path driver_cache)
    : visible_(visible_device(facts.ordinal)), driver_cache_(std::move(driver_cache)) {
  for (auto& one : candidates_) one = start();
  reference_ = start_reference();
  while (spares_.size() < spares) spares_.push_back(start());
}

void gpu_processes::attach(const compiled_block& tools, int launch_core,
                           const gpu_arena& candidates, const gpu_arena& references) {
  candidate_arena_ = &candidates;
  reference_arena_ = &references;
  attachment_.tools = tools.code;
  attachment_.core = launch_core;
  for (const kernel_facts& k : tools.kernels) {
    if (k.name == "spoil_shared") attachment_.spoil_symbol = k.symbol;
    if (k.name == "scramble") attachment_.scramble_symbol = k.symbol;
  }
  for (const auto& one : candidates_) attach(*one, candidates);
  attach(*reference_, references);
  for (const auto& one : spares_) attach(*one, candidates);
}

void gpu_processes::end() {
  // All of them are killed before the first is awaited, because the driver takes its time.
  for (const auto& one : candidates_) one->send_kill();
  for (const auto& one : spares_) one->send_kill();
  reference_->send_kill();
  for (auto& one : candidates_) one.reset();
  reference_.reset();
  spares_.clear();
}

std::unique_ptr<gpu_process> gpu_processes::start() const {
  return std::make_unique<gpu_process>(visible_);
}

std::unique_ptr<gpu_process> gpu_processes::start_reference() const {
  return std::make_unique<gpu_process>(visible_, driver_cache_);
}

void gpu_processes::attach(gpu_process& one, const gpu_arena& arena) const {
  gpu_attachment attachment = attachment_;
  attachment.handle = arena.handle();
  attachment.bytes = arena.size();
  attachment.head = arena.head_descriptor();
  one.attach(attachment);
}

gpu_process& gpu_processes::candidate(role of) {
  auto& place = candidates_[static_cast<std::size_t>(of)];
  place->await_ready();
  if (!place->alive()) replace(of);
  return *place;
}

gpu_process& gpu_processes::reference() {
  reference_->await_ready();
  if (!reference_->alive()) replace_reference();
  return *reference_;
}

void gpu_processes::replace_reference() {
  reference_ = start_reference();
  attach(*reference_, *reference_arena_);
  reference_->await_ready();
}

void gpu_processes::await_all() {
  for (const auto& one : candidates_) one->await_ready();
  reference_->await_ready();
  for (const auto& one : spares_) one->await_ready();
}

void gpu_processes::replace(role of) {
  auto& place = candidates_[static_cast<std::size_t>(of)];
  do {
    spares_.push_back(start());
    attach(*spares_.back(), *candidate_arena_);
    place = std::move(spares_.front());
    spares_.pop_front();
    place->await_ready();
  } while (!place->alive());
}

std::pair<std::uint64_t, std::uint64_t> gpu_processes::pair_of(role of) {
  return {candidate(of).serial(), reference().serial()};
}

}  // namespace hone
