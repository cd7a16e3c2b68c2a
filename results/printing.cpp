#include "results/printing.hpp"

#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>
#include <vector>

#include "messages/ids.hpp"
#include "messages/measurements.hpp"
#include "messages/names.hpp"

namespace hone {
namespace {

using nlohmann::ordered_json;

// Two decimals say too little of a score below this.
constexpr double small_score = 0.1;

ordered_json number_or_null(double value, bool known) {
  return known ? ordered_json(value) : ordered_json(nullptr);
}

// Returns a line for each case with more results than its times, and a line for each of its
// kernels.
std::string describe_cases(const schema::Measurement::Reader& m) {
  std::string lines;
  for (const auto c : m.getCases()) {
    std::string line;
    for (const auto baseline : c.getBaselines()) {
      if (view(baseline.getName()) != "eager" && c.getCandidateUs() > 0)
        line += (line.empty() ? "" : ", ") + fixed(baseline.getUs() / c.getCandidateUs(), 2) +
                "x against " + text(baseline.getName()) + " (" + fixed(baseline.getUs(), 1) +
                " us)";
    }
    for (const auto missing : c.getMissingBaselines())
      line += (line.empty() ? "" : ", ") +
              ("no " + text(missing.getName()) + " (" + text(missing.getWhy()) + ")");
    // Bytes per microsecond are megabytes per second.
    if (c.getBytes() > 0 && c.getCandidateUs() > 0)
      line += (line.empty() ? "" : ", ") +
              fixed(static_cast<double>(c.getBytes()) / c.getCandidateUs() / 1e3, 0) +
              " GB/s of inputs and outputs";
    // The operations are those of the reference; the candidate may need fewer.
    if (c.getFlops() > 0 && c.getCandidateUs() > 0)
      line += (line.empty() ? "" : ", ") +
              fixed(static_cast<double>(c.getFlops()) / c.getCandidateUs() / 1e6, 1) +
              " TFLOP/s of products";
    if (c.getThrottled().size() > 0)
      line += (line.empty() ? "" : ", ") + ("slowed down by " + text(c.getThrottled()));
    if (!line.empty()) lines += "\n    " + text(c.getSizes()) + ": " + line;
    for (const auto k : c.getKernels()) {
      lines +=
          "\n      " + text(k.getName()) + ": " + std::to_string(k.getBlocks()) + " blocks of " +
          std::to_string(k.getThreads()) + ", " + std::to_string(k.getRegisters()) +
          " registers, " + std::to_string(k.getStaticSharedBytes() + k.getDynamicSharedBytes()) +
          " bytes shared, " + std::to_string(k.getLocalBytes()) + " local, " +
          std::to_string(k.getSpilledBytes()) + " spilled, occupancy " + percent(k.getOccupancy());
    }
  }
  return lines;
}

ordered_json to_json(const schema::CaseTiming::Reader& c) {
  ordered_json buckets = ordered_json::array();
  for (const double b : c.getBuckets()) buckets.push_back(b);
  ordered_json baselines = ordered_json::object();
  for (const auto baseline : c.getBaselines())
    baselines[text(baseline.getName())] = baseline.getUs();
  ordered_json missing = ordered_json::object();
  for (const auto baseline : c.getMissingBaselines())
    missing[text(baseline.getName())] = text(baseline.getWhy());
  ordered_json kernels = ordered_json::array();
  for (const auto k : c.getKernels()) {
    kernels.push_back({{"name", text(k.getName())},
                       {"blocks", k.getBlocks()},
                       {"threads", k.getThreads()},
                       {"registers", k.getRegisters()},
                       {"static_shared_bytes", k.getStaticSharedBytes()},
                       {"dynamic_shared_bytes", k.getDynamicSharedBytes()},
                       {"local_bytes", k.getLocalBytes()},
                       {"spilled_bytes", k.getSpilledBytes()},
                       {"occupancy", k.getOccupancy()}});
  }
  return {{"sizes", text(c.getSizes())},
          {"speedup", c.getSpeedup()},
          {"interval", {c.getIntervalLow(), c.getIntervalHigh()}},
          {"reference_us", c.getReferenceUs()},
          {"candidate_us", c.getCandidateUs()},
          {"reference_wall_us", c.getReferenceWallUs()},
          {"candidate_wall_us", c.getCandidateWallUs()},
          {"floor_us", c.getFloorUs()},
          {"rounds", c.getRounds()},
          {"buckets", buckets},
          {"baselines_us", baselines},
          {"missing_baselines", missing},
          {"burst_us", c.getBurstUs()},
          {"traced_us", c.getTracedUs()},
          {"burst_span_us", c.getBurstSpanUs()},
          {"burst_busy_us", c.getBurstBusyUs()},
          {"unseen_us", c.getUnseenUs()},
          {"throttled", text(c.getThrottled())},
          {"bytes", c.getBytes()},
          {"flops", c.getFlops()},
          {"kernels", kernels}};
}

ordered_json to_json(const schema::Measurement::Confirmation::Reader& c) {
  return {{"device", text(c.getDevice())},
          {"speedup_raw", c.getScoreRaw()},
          {"rounds", c.getRounds()},
          {"measure_ms", c.getMeasureMs()}};
}

}  // namespace

std::string text(capnp::Text::Reader t) { return std::string(view(t)); }

std::string one_line(const ordered_json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string fixed(double value, int digits) {
  std::array<char, 64> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%.*f", digits, value);
  return buffer.data();
}

std::string counted(std::size_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

std::vector<std::string> shortened(std::vector<std::string> lines) {
  constexpr std::size_t most = 5;
  constexpr std::size_t shown = 3;
  if (lines.size() <= most) return lines;
  const std::size_t hidden = lines.size() - shown;
  lines.resize(shown);
  lines.push_back("the same holds for " + counted(hidden, "more task"));
  return lines;
}

std::string percent(double share) { return fixed(100 * share, 1) + " %"; }

std::string shares_text(const std::map<std::string, double>& counts) {
  double sum = 0;
  for (const auto& [name, count] : counts) sum += count;
  std::string text;
  for (const auto& [name, count] : counts)
    text += (text.empty() ? "" : "  ") + name + " " + percent(sum > 0 ? count / sum : 0);
  return text;
}

std::string pad(std::string text, std::size_t width, bool right) {
  if (text.size() < width) text.insert(right ? 0 : text.size(), width - text.size(), ' ');
  return text;
}

ordered_json to_json(const schema::Measurement::Reader& m) {
  ordered_json cases = ordered_json::array();
  for (const auto c : m.getCases()) cases.push_back(to_json(c));
  return {{"id", to_string(measurement_id(m.getId()))},
          {"outcome", name_of(m.getOutcome())},
          {"kind", text(m.getKind())},
          {"message", text(m.getMessage())},
          {"speedup", m.getScore()},
          {"speedup_raw", m.getScoreRaw()},
          {"interval", {m.getIntervalLow(), m.getIntervalHigh()}},
          {"cases", cases},
          {"seed", std::to_string(m.getSeed())},
          {"device", text(m.getDevice())},
          {"node", text(m.getNode())},
          {"toolchain", text(m.getToolchain())},
          {"driver", text(m.getDriver())},
          {"judge_version", m.getJudgeVersion()},
          {"clock_mhz", {m.getClockMhzBefore(), m.getClockMhzAfter()}},
          {"temperature_c", {m.getTemperatureBefore(), m.getTemperatureAfter()}},
          {"started_ms", m.getStartedMs()},
          {"screened", m.getScreened()},
          {"measure_ms", m.getMeasureMs()},
          {"confirmation", m.hasConfirmation() ? to_json(m.getConfirmation()) : nullptr}};
}

std::string scope_text(std::uint32_t scope) {
  return is_comparison(scope)  ? is_screening(scope) ? "screened_comparison" : "comparison"
         : is_screening(scope) ? "screening"
                               : "run";
}

ordered_json to_json(const schema::Evaluation::Reader& e, const std::string& task_name) {
  const auto measurements = e.getMeasurements();
  const schema::Measurement::Reader shown = measurement_of_score(e);
  const bool timed = shown.getCases().size() > 0;
  const headline known = headline_of(e);
  const bool is_single = timed && measurements.size() == 1;
  std::uint32_t rounds = 0;
  for (const auto c : shown.getCases()) rounds += c.getRounds();
  ordered_json all = ordered_json::array();
  for (const auto m : measurements) all.push_back(to_json(m));
  return {{"task", task_name},
          {"variant", to_string(variant_id(e.getVariantId()))},
          {"device_type", text(e.getDeviceType())},
          {"scope", scope_text(e.getScope())},
          {"compared_at", is_comparison(e.getScope()) ? ordered_json(e.getScope() / scope_kinds)
                                                      : ordered_json(nullptr)},
          {"closed_ms", e.getClosedMs()},
          {"outcome", name_of(e.getOutcome())},
          {"kind", text(e.getKind())},
          {"message", text(e.getMessage())},
          {"speedup", number_or_null(known.speedup, has_score(e))},
          {"speedup_range", known.measurements > 0 ? ordered_json({known.lowest, known.highest})
                                                   : ordered_json(nullptr)},
          {"measurement_count", known.measurements},
          {"later_speedup", number_or_null(known.later_speedup, known.later > 0)},
          // An interval belongs to one measurement.
          {"speedup_raw", number_or_null(shown.getScoreRaw(), is_single)},
          {"interval", is_single ? ordered_json({shown.getIntervalLow(), shown.getIntervalHigh()})
                                 : ordered_json(nullptr)},
          {"reference_us", number_or_null(reference_us(shown), timed)},
          {"candidate_us", number_or_null(candidate_us(shown), timed)},
          {"rounds", rounds},
          {"compile_ms", e.getCompileMs()},
          {"seed", std::to_string(e.getVerdict().getSeed())},
          {"verification",
           {{"outcome", e.hasVerdict() ? ordered_json(name_of(e.getVerdict().getOutcome()))
                                       : ordered_json(nullptr)},
            {"seed", std::to_string(e.getVerdict().getSeed())},
            {"rounds", e.getVerdict().getRounds()},
            {"worst_element", e.getVerdict().getWorstElement()},
            {"worst_rms", e.getVerdict().getWorstRms()},
            {"verify_ms", e.getVerdict().getVerifyMs()}}},
          {"measurements", all}};
}

std::string range_text(const headline& score) {
  if (score.measurements < 2) return "once";
  return std::to_string(score.measurements) + ": " + fixed(score.lowest, 2) + " to " +
         fixed(score.highest, 2);
}

std::string headline_text(const schema::Evaluation::Reader& e) {
  const headline known = headline_of(e);
  const std::string speedup = fixed(known.speedup, 2) + "x";
  if (known.measurements > 1)
    return speedup + "  median of " + std::to_string(known.measurements) + " measurements (" +
           fixed(known.lowest, 2) + "x to " + fixed(known.highest, 2) + "x)";
  const schema::Measurement::Reader m = measurement_of_score(e);
  return speedup + "  " +
         (known.speedup < small_score ? "measured " + fixed(m.getScoreRaw(), 4) + "  " : "") + "[" +
         fixed(m.getIntervalLow(), 3) + ", " + fixed(m.getIntervalHigh(), 3) + "]";
}

std::string describe(const schema::Evaluation::Reader& e) {
  std::string line(name_of(e.getOutcome()));
  if (e.getKind().size() > 0) line += " (" + text(e.getKind()) + ")";
  const schema::Measurement::Reader shown = measurement_of_score(e);
  if (shown.getCases().size() > 0) {
    if (e.getOutcome() == Outcome::OK) line += "  " + headline_text(e);
    line += "  " + fixed(candidate_us(shown), 1) + " us against " + fixed(reference_us(shown), 1) +
            " us";
  }
  if (e.getMessage().size() > 0) line += "\n    " + text(e.getMessage());
  return line + describe_cases(shown);
}

}  // namespace hone
