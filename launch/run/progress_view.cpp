#include "launch/run/progress_view.hpp"

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <optional>
#include <sstream>
#include <utility>

#include "launch/run/run_activity.hpp"
#include "messages/clock.hpp"
#include "messages/names.hpp"
#include "results/printing.hpp"

namespace hone {
namespace {

using clock_type = std::chrono::steady_clock;

constexpr auto line_interval = std::chrono::seconds(10);
constexpr double quick_report_s = 3;

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
    if (view(status->getRoom()) != "queue") continue;
    text += (text.empty() ? "" : "  ") + name.substr(6) + " " +
            std::to_string(status->getQueued()) + "+" + std::to_string(status->getInFlight());
  }
  return text;
}

std::string samples_text(const schema::RunStatus::Reader& run) {
  std::map<std::string, double> outcomes;
  for (const auto n : run.getOutcomes()) outcomes[std::string(view(n.getName()))] = n.getValue();
  return "samples of this stage: " + (outcomes.empty() ? "none yet" : shares_text(outcomes));
}

// Returns the devices of this node with their share of busy time.
std::string devices_text(const node_snapshot& snapshot) {
  std::string text;
  for (const auto& [name, status] : snapshot.actors) {
    if (view(status->getRoom()) != "device") continue;
    const double alive = status->getAliveSeconds();
    text += (text.empty() ? "" : "  ") + name.substr(name.find(' ') + 1) + " busy " +
            percent(alive > 0 ? status->getBusySeconds() / alive : 0);
  }
  return text;
}

std::size_t in_flight(const node_snapshot& snapshot, const std::string& room) {
  std::size_t sum = 0;
  for (const auto& [name, status] : snapshot.actors) {
    if (view(status->getRoom()) == room) sum += status->getInFlight();
  }
  return sum;
}

// Returns for how long the learner has been too busy to report, or 0 if it is not.
double busy_s_of_learner(const node_snapshot& snapshot) {
  for (const auto& [name, status] : snapshot.actors) {
    if (view(status->getRoom()) != "learner") continue;
    const auto heard = snapshot.heard.find(name);
    const double s = heard == snapshot.heard.end() ? 0 : seconds_since(heard->second);
    return s > quick_report_s ? s : 0;
  }
  return 0;
}

}  // namespace

std::string activity_text(const node_snapshot& snapshot) {
  if (number_of(snapshot, "learner", "steps") == 0)
    return "the run starts: the learner loads the policy, or makes its first update";
  const double busy_s = busy_s_of_learner(snapshot);
  const std::size_t written = in_flight(snapshot, "generator");
  const std::size_t judged = in_flight(snapshot, "pool");
  const bool supervised =
      number_of(snapshot, "learner", "stage") == static_cast<double>(Stage::SFT);
  std::string text;
  if (busy_s > 0) {
    text = "the learner has trained for " + clock_text(busy_s) + " without a pause";
  } else if (supervised && number_of(snapshot, "learner", "waits_for_corpus") > 0) {
    text = "the learner waits for documents of the corpus";
  } else if (supervised || in_flight(snapshot, "learner") == 0) {
    text = "the learner trains";
  } else {
    text = "the learner waits for samples";
  }
  if (written > 0) text += ", " + std::to_string(written) + " samples are being written";
  if (judged > 0) text += ", " + std::to_string(judged) + " evaluations are under way";
  for (const auto& [name, usage] : activity_of(snapshot).endpoints)
    text += "; " + name + ": " + describe(usage);
  return text;
}

progress_view::progress_view()
    : is_terminal_(isatty(STDOUT_FILENO) != 0),
      started_(clock_type::now()),
      last_line_(clock_type::now() - line_interval),
      pace_({}),
      tokens_at_(clock_type::now()),
      trained_at_(tokens_at_) {}

void progress_view::expect(std::map<Stage, stage_work> work) {
  const std::lock_guard hold(lock_);
  pace_ = run_pace(std::move(work));
}

void progress_view::message(const std::string& line) {
  const std::lock_guard hold(lock_);
  if (is_terminal_ && drawn_lines_ > 0) std::cout << "\033[" << drawn_lines_ << "A\033[J";
  drawn_lines_ = 0;
  std::cout << line << std::endl;
}

std::string progress_view::summarize(const node_snapshot& snapshot) const {
  const double steps = number_of(snapshot, "learner", "steps");
  std::string text = "[" + clock_text(seconds_since(started_)) + "] ";
  if (steps == 0) return text + "starting";
  const auto stage = static_cast<Stage>(static_cast<int>(number_of(snapshot, "learner", "stage")));
  text += std::string(name_of(stage)) + " step " +
          fixed(number_of(snapshot, "learner", "step"), 0) + " of " + fixed(steps, 0);
  const auto stage_left = pace_.stage_left_s();
  const auto run_left = pace_.run_left_s();
  if (stage_left) text += "  " + clock_text(*stage_left) + " left in the stage";
  if (run_left) text += ", " + clock_text(*run_left) + " in the run";
  const double updates = number_of(snapshot, "learner", "updates");
  if (stage == Stage::SFT && updates > 0) {
    text += "  update " + fixed(updates, 0);
    if (training_rate_ > 0) text += ", " + fixed(training_rate_, 0) + " tokens/s";
    text += ", loss " + fixed(number_of(snapshot, "learner", "loss"), 4);
  }
  const double valid = number_of(snapshot, "learner", "validation_ok");
  if (valid > 0) text += "  held-out " + percent(valid) + " ok";
  if (writing_rate_ > 0) text += "  writing " + fixed(writing_rate_, 0) + " tokens/s";
  return text;
}

std::string progress_view::draw(const node_snapshot& snapshot) const {
  const auto run = *snapshot.run;
  std::ostringstream out;
  out << summarize(snapshot) << "\n" << activity_text(snapshot) << "\n";
  const std::string queues = queues_text(snapshot);
  if (!queues.empty()) out << "queues (waiting+working): " << queues << "\n";
  const std::string devices = devices_text(snapshot);
  if (!devices.empty()) out << "devices: " << devices << "\n";
  out << "version " << run.getVersion() << "  lag " << fixed(run.getLag(), 2) << "  groups waiting "
      << run.getWaitingGroups() << " ready " << run.getReadyGroups() << "\n"
      << samples_text(run) << "\n";
  for (const auto t : run.getTasks()) {
    out << "  " << pad(std::string(view(t.getName())) + " ", 26)
        << (t.getBest() > 0 ? fixed(t.getBest(), 2) + "x" : "-") << "  of " << t.getVariants()
        << " ok variants\n";
  }
  return out.str();
}

void progress_view::measure_pace(const node_snapshot& snapshot) {
  // Before its first report the learner has no number of steps.
  const double steps = number_of(snapshot, "learner", "steps");
  if (steps > 0) {
    const double ends_s = number_of(snapshot, "learner", "stage_ends_s");
    std::optional<double> limit_s;
    if (ends_s > 0) limit_s = ends_s - static_cast<double>(unix_ms()) / 1e3;
    pace_.observe(
        {static_cast<Stage>(static_cast<int>(number_of(snapshot, "learner", "stage"))),
         number_of(snapshot, "learner", "step") + number_of(snapshot, "learner", "part_of_step"),
         steps, limit_s, number_of(snapshot, "learner", "waits_for_corpus") == 0},
        seconds_since(started_));
  }
  const double span = seconds_since(tokens_at_);
  if (span < 2) return;
  const double written = number_of(snapshot, "generator", "tokens");
  const double trained = number_of(snapshot, "learner", "trained_tokens");
  writing_rate_ = (written - written_) / span;
  // A busy learner has not reported, so its number stays until it does.
  if (trained != trained_) {
    training_rate_ = (trained - trained_) / seconds_since(trained_at_);
    trained_ = trained;
    trained_at_ = clock_type::now();
  }
  written_ = written;
  tokens_at_ = clock_type::now();
}

void progress_view::show(const node_snapshot& snapshot) {
  const std::lock_guard hold(lock_);
  if (!snapshot.run) return;
  measure_pace(snapshot);
  if (is_terminal_) {
    const std::string screen = draw(snapshot);
    if (drawn_lines_ > 0) std::cout << "\033[" << drawn_lines_ << "A\033[J";
    std::cout << screen << std::flush;
    drawn_lines_ = static_cast<std::size_t>(std::count(screen.begin(), screen.end(), '\n'));
    return;
  }
  if (clock_type::now() - last_line_ < line_interval) return;
  last_line_ = clock_type::now();
  std::cout << summarize(snapshot) << "  |  " << activity_text(snapshot) << "  |  "
            << samples_text(*snapshot.run) << std::endl;
}

}  // namespace hone
