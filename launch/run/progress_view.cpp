#include "launch/run/progress_view.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <sstream>

#include "launch/printing.hpp"
#include "messages/clock.hpp"

namespace hone {
namespace {

using clock_type = std::chrono::steady_clock;

constexpr auto line_interval = std::chrono::seconds(10);

double seconds_since(clock_type::time_point t) {
  return std::chrono::duration<double>(clock_type::now() - t).count();
}

std::string clock_text(double seconds) {
  const auto s = static_cast<int>(seconds);
  return std::to_string(s / 60) + ":" + (s % 60 < 10 ? "0" : "") + std::to_string(s % 60);
}

// Returns the sum of a number that the actors of a room report under this name.
double number_of(const node_snapshot& snapshot, const std::string& room, const std::string& name) {
  double sum = 0;
  for (const auto& [key, status] : snapshot.actors) {
    if (view(status->getRoom()) != room) continue;
    for (const auto n : status->getNumbers()) {
      if (view(n.getName()) == name) sum += n.getValue();
    }
  }
  return sum;
}

std::string queues_text(const node_snapshot& snapshot) {
  std::string text;
  for (const auto& [name, status] : snapshot.actors) {
    if (view(status->getRoom()) == "queue")
      text += (text.empty() ? "" : "  ") + name.substr(6) + " " +
              std::to_string(status->getQueued()) + "+" + std::to_string(status->getInFlight());
  }
  return text;
}

// Returns the shares of the first outcomes of the variants that are new in this stage.
std::string outcomes_text(const schema::RunStatus::Reader& run) {
  double total = 0;
  for (const auto n : run.getOutcomes()) total += n.getValue();
  std::string text;
  for (const auto n : run.getOutcomes())
    text += (text.empty() ? "" : "  ") + std::string(view(n.getName())) + " " +
            fixed(100 * n.getValue() / std::max(1.0, total), 0) + "%";
  return "outcomes in this stage: " + (text.empty() ? "none yet" : text);
}

}  // namespace

progress_view::progress_view()
    : is_terminal_(isatty(STDOUT_FILENO) != 0),
      started_(clock_type::now()),
      last_line_(clock_type::now() - line_interval),
      stage_began_(clock_type::now()),
      tokens_at_(clock_type::now()) {}

void progress_view::message(const std::string& line) {
  const std::lock_guard hold(lock_);
  if (is_terminal_ && drawn_lines_ > 0) std::cout << "\033[" << drawn_lines_ << "A\033[J";
  drawn_lines_ = 0;
  std::cout << line << std::endl;
}

std::string progress_view::summarise(const node_snapshot& snapshot) const {
  const auto run = *snapshot.run;
  const double step = number_of(snapshot, "learner", "step");
  const double steps = number_of(snapshot, "learner", "steps");
  const double elapsed = seconds_since(started_);
  std::string text = "[" + clock_text(elapsed) + "] " + std::string(view(run.getStage())) + " " +
                     fixed(step, 0) + "/" + fixed(steps, 0) + "  version " +
                     std::to_string(run.getVersion()) + "  lag " + fixed(run.getLag(), 2) +
                     "  in flight " + std::to_string(run.getInFlight()) + "  groups waiting " +
                     std::to_string(run.getWaitingGroups()) + " ready " +
                     std::to_string(run.getReadyGroups());
  if (tokens_per_second_ > 0) text += "  " + fixed(tokens_per_second_, 0) + " tokens/s";
  // The time left follows from the pace since this process first saw the stage. The time limit of
  // the stage bounds it.
  const double new_steps = step - stage_first_step_;
  double left = std::numeric_limits<double>::infinity();
  if (new_steps > 0) left = seconds_since(stage_began_) / new_steps * (steps - step);
  const double ends_s = number_of(snapshot, "learner", "stage_ends_s");
  const double until_then = ends_s - static_cast<double>(unix_ms()) / 1e3;
  if (ends_s > 0) left = std::clamp(until_then, 0.0, left);
  if (step < steps && std::isfinite(left)) text += "  " + clock_text(left) + " left in the stage";
  return text;
}

std::string progress_view::draw(const node_snapshot& snapshot) {
  const auto run = *snapshot.run;
  std::ostringstream out;
  out << summarise(snapshot) << "\n";
  out << "queues (waiting+working): " << queues_text(snapshot) << "\n";
  out << outcomes_text(run) << "\n";
  for (const auto t : run.getTasks()) {
    out << "  " << pad(std::string(view(t.getName())) + " ", 26)
        << (t.getBest() > 0 ? fixed(t.getBest(), 2) + "x" : "-") << "  of " << t.getVariants()
        << " ok variants\n";
  }
  return out.str();
}

void progress_view::show(const node_snapshot& snapshot) {
  const std::lock_guard hold(lock_);
  if (!snapshot.run) return;
  const double stage = number_of(snapshot, "learner", "stage");
  // Before its first report the learner has no number of steps.
  if (number_of(snapshot, "learner", "steps") > 0 && stage_ != stage) {
    stage_ = stage;
    stage_began_ = clock_type::now();
    stage_first_step_ = number_of(snapshot, "learner", "step");
  }
  const double tokens = number_of(snapshot, "generator", "tokens");
  const double span = seconds_since(tokens_at_);
  if (span >= 2) {
    tokens_per_second_ = (tokens - tokens_) / span;
    tokens_ = tokens;
    tokens_at_ = clock_type::now();
  }
  if (is_terminal_) {
    const std::string screen = draw(snapshot);
    if (drawn_lines_ > 0) std::cout << "\033[" << drawn_lines_ << "A\033[J";
    std::cout << screen << std::flush;
    drawn_lines_ = static_cast<std::size_t>(std::count(screen.begin(), screen.end(), '\n'));
    return;
  }
  if (clock_type::now() - last_line_ < line_interval) return;
  last_line_ = clock_type::now();
  std::cout << summarise(snapshot) << "  |  " << queues_text(snapshot) << "  |  "
            << outcomes_text(*snapshot.run) << std::endl;
}

}  // namespace hone
