#include "policy/training/curriculum.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "messages/ids.hpp"
#include "policy/training/working_examples.hpp"
#include "tasks/variant_document.hpp"

namespace hone {
namespace {

std::map<std::string, prompt_facts> facts_by_task(const task_table& tasks) {
  std::map<std::string, prompt_facts> facts;
  record_builder<schema::Draw> empty;
  const auto draw = empty.finish();
  for (const auto& t : tasks.all()) {
    if (tasks.role_of(t->id) == task_role::learned) facts[t->name] = facts_for(*t, *draw);
  }
  return facts;
}

// Texts of a checkpoint: the state of the random stream, that of the data set's draws, and the
// place in the stream of pairs.
constexpr const char* random_key = "curriculum.random";
constexpr const char* sft_draws_key = "sft.draws";
constexpr const char* sft_stream_key = "sft.stream";

double score_of(const schema::ScoredGroup::Result::Reader& result) {
  return result.getOutcome() == Outcome::OK ? result.getScore() : 0;
}

}  // namespace

std::int64_t steps_of(const curriculum_options& plan, Stage stage) {
  switch (stage) {
    case Stage::SFT:
      return plan.sft.updates_per_step > 0
                 ? (plan.sft.updates + plan.sft.updates_per_step - 1) / plan.sft.updates_per_step
                 : 0;
    case Stage::SELF_SUPERVISED:
      return plan.self_supervised.steps;
    case Stage::CONTRASTIVE:
      return plan.contrastive.steps;
    case Stage::COMPARISON:
      return 1;
    case Stage::VALIDATION:  // no stages of a curriculum
    case Stage::SERVICE:
      break;
  }
  return 0;
}

bool is_on_curve(const curriculum_options& plan, Stage stage, std::int64_t step) {
  const std::int64_t steps = steps_of(plan, stage);
  if (stage == Stage::COMPARISON || step <= 0 || step >= steps) return false;
  const std::int64_t parts = plan.comparison.curve + 1;
  return step * parts / steps > (step - 1) * parts / steps;
}

curriculum::curriculum(const curriculum_options& o, std::unique_ptr<trainer> learns,
                       std::shared_ptr<const prompt_template> prompts, const task_table& tasks,
                       std::uint64_t seed)
    : options_(o),
      trainer_(std::move(learns)),
      prompts_(std::move(prompts)),
      tasks_(&tasks),
      random_(seed) {
  if (trainer_)
    sft_data_.emplace(trainer_->codec(), *prompts_, facts_by_task(tasks),
                      sft_data_set::options{o.sft.exemplar_share, o.sft.exemplars,
                                            static_cast<std::size_t>(trainer_->context())});
}

void curriculum::read_stream(pair_stream::open_source open, pair_stream::options o) {
  if (!trainer_) return;
  o.context = static_cast<std::size_t>(trainer_->context());
  stream_ = std::make_unique<pair_stream>(std::move(open), trainer_->codec(), *prompts_, o);
}

std::optional<double> curriculum::seconds_left() const {
  const double minutes = stage_ == Stage::SFT           ? options_.sft.minutes
                         : stage_ == Stage::CONTRASTIVE ? options_.contrastive.minutes
                                                        : 0;
  if (minutes <= 0) return std::nullopt;
  return 60 * minutes - seconds_in_stage();
}

double curriculum::seconds_in_stage() const {
  if (!stage_began_) return seconds_before_;
  return seconds_before_ +
         std::chrono::duration<double>(std::chrono::steady_clock::now() - *stage_began_).count();
}

// Returns the learning rate of the next supervised update.
double curriculum::sft_rate() const {
  const double minutes = options_.sft.minutes;
  return options_.sft.rate.at(sft_updates_, minutes > 0 ? seconds_in_stage() / (60 * minutes) : 0);
}

bool curriculum::is_over() const {
  if (stage_ == Stage::COMPARISON) return false;
  if (stage_ == Stage::SFT)
    return steps() == 0 || sft_updates_ >= options_.sft.updates || is_out_of_time();
  return step_ >= steps() || (step_ > 0 && is_out_of_time());
}

bool curriculum::advance() {
  bool ended = false;
  while (is_over()) {
    stage_ = static_cast<Stage>(static_cast<int>(stage_) + 1);
    stage_began_ = std::chrono::steady_clock::now();
    seconds_before_ = 0;
    step_ = 0;
    ended = true;
    stream_.reset();  // its processes take memory and cores
    if (stage_ != Stage::CONTRASTIVE || !trainer_) continue;
    trainer_->restart_optimizer();
    if (has_kl()) trainer_->keep_reference();
  }
  return ended;
}

void curriculum::admit(const schema::ScoredGroup::Reader& scored) {
  const auto group = scored.getGroup();
  const auto t = tasks_->find(task_id(group.getDraw().getTaskId()));
  if (t == nullptr || tasks_->role_of(t->id) != task_role::learned || !sft_data_) return;
  for (unsigned i = 0; i < group.getRollouts().size(); ++i) {
    const auto result = scored.getResults()[i];
    if (result.getOutcome() != Outcome::OK) continue;
    const std::string text(view(group.getRollouts()[i].getText()));
    const auto parsed = parse_variant_document(text);
    const auto* document = std::get_if<variant_document>(&parsed);
    if (document == nullptr) continue;
    sft_data_->add(
        {t->name, std::string(view(group.getDraw().getDeviceType())), text,
         show_variant(result.getScore(), document->options, document->cuda, document->python)});
  }
}

std::int64_t curriculum::sft_updates_left_in_step() const {
  if (is_out_of_time()) return 0;
  return std::min(options_.sft.updates, updates_at_step_begin_ + options_.sft.updates_per_step) -
         sft_updates_;
}

double curriculum::part_of_sft_step() const {
  const auto planned = static_cast<double>(options_.sft.updates_per_step);
  return planned > 0 ? static_cast<double>(sft_updates_ - updates_at_step_begin_) / planned : 0;
}

std::uint64_t curriculum::tokens_trained_on() const {
  return trainer_ ? trainer_->tokens_trained_on() : 0;
}

double curriculum::sft_update() {
  if (!stage_began_) stage_began_ = std::chrono::steady_clock::now();
  if (!trainer_) {
    ++sft_updates_;
    return 0;
  }
  std::vector<sft_example> batch;
  for (std::int64_t i = 0; i < options_.sft.batch; ++i)
    batch.push_back(stream_ ? stream_->next() : sft_data_->next(random_));
  const double loss = trainer_->sft_update(batch, sft_rate(), options_.sft.prompt_weight);
  ++sft_updates_;
  loss_sum_ += loss;
  return loss;
}

curriculum::numbers curriculum::end_sft_step() {
  const auto updates =
      static_cast<double>(std::max<std::int64_t>(1, sft_updates_ - updates_at_version_));
  numbers n = {{"loss", loss_sum_ / updates},
               {"rate", sft_rate()},
               {"updates", static_cast<double>(sft_updates_)},
               {"documents", static_cast<double>(documents())}};
  if (stream_) {
    const pair_stream::counts& now = stream_->so_far();
    n["documents"] = static_cast<double>(now.pairs);
    n["lessons"] = static_cast<double>(now.lessons);
    n["lessons_skipped"] = static_cast<double>(now.skipped);
    n["pairs_too_long"] = static_cast<double>(now.too_long);
    n["stream_wait_s"] = now.waited_s;
  }
  count_work(n);
  loss_sum_ = 0;
  updates_at_version_ = sft_updates_;
  if (sft_updates_left_in_step() > 0) return n;
  updates_at_step_begin_ = sft_updates_;
  ++step_;
  return n;
}

curriculum::numbers curriculum::learn(const schema::TrainingBatch::Reader& batch,
                                      std::uint64_t version) {
  numbers n = describe_batch(batch);
  if (stage_ == Stage::CONTRASTIVE) {
    const auto groups = batch.getGroups();
    n["groups_with_signal"] = static_cast<double>(std::count_if(
        groups.begin(), groups.end(), [this](const auto& scored) { return has_signal(scored); }));
  }
  numbers learned;
  if (trainer_ && stage_ == Stage::SELF_SUPERVISED) learned = learn_from_working(batch);
  if (trainer_ && stage_ == Stage::CONTRASTIVE) learned = learn_by_contrast(batch, version);
  n.insert(learned.begin(), learned.end());
  count_work(n);
  ++step_;
  n["planned_steps"] = static_cast<double>(steps());
  return n;
}

void curriculum::count_work(numbers& n) {
  if (!trainer_) return;
  const std::uint64_t tokens = trainer_->tokens_trained_on();
  n["tokens"] = static_cast<double>(tokens - std::exchange(tokens_before_, tokens));
  const std::uint64_t skipped = trainer_->skipped_updates();
  n["skipped_updates"] = static_cast<double>(skipped - std::exchange(skipped_before_, skipped));
}

// Scores do not matter in this stage.
curriculum::numbers curriculum::learn_from_working(const schema::TrainingBatch::Reader& batch) {
  std::vector<sft_example> examples = working_examples(batch, trainer_->codec());
  double loss = 0;
  std::int64_t updates = 0;
  for (std::int64_t pass = 0; pass < options_.self_supervised.passes; ++pass) {
    std::shuffle(examples.begin(), examples.end(), random_);
    for (std::size_t at = 0; at < examples.size();
         at += static_cast<std::size_t>(options_.self_supervised.batch)) {
      const std::size_t count =
          std::min(static_cast<std::size_t>(options_.self_supervised.batch), examples.size() - at);
      loss += trainer_->sft_update(std::span(examples).subspan(at, count),
                                   options_.self_supervised.rate, 0);
      ++updates;
    }
  }
  return {{"loss", updates > 0 ? loss / static_cast<double>(updates) : 0},
          {"examples", static_cast<double>(examples.size())},
          {"rate", options_.self_supervised.rate}};
}

std::optional<decoder_weights> curriculum::copy_weights() const {
  return trainer_ ? std::optional(trainer_->copy_weights()) : std::nullopt;
}

taken_checkpoint curriculum::take_checkpoint() const {
  std::ostringstream random;
  random << random_;
  training_progress progress = {{{"stage", static_cast<double>(stage_)},
                                 {"step", static_cast<double>(step_)},
                                 {"stage_seconds", seconds_in_stage()},
                                 {"sft_updates", static_cast<double>(sft_updates_)},
                                 {"sft_step_begin", static_cast<double>(updates_at_step_begin_)}},
                                {{random_key, random.str()}}};
  if (sft_data_) progress.texts[sft_draws_key] = sft_data_->state();
  if (stream_) progress.texts[sft_stream_key] = stream_->state();
  if (trainer_) return trainer_->take_checkpoint(std::move(progress));
  return [progress](const std::filesystem::path& folder) { save_checkpoint(folder, progress); };
}

void curriculum::load(const std::filesystem::path& checkpoint) {
  const training_progress progress =
      trainer_ ? trainer_->load(checkpoint) : load_training_progress(checkpoint);
  const auto number = [&](const char* name) {
    const auto found = progress.numbers.find(name);
    return found != progress.numbers.end() ? static_cast<std::int64_t>(found->second) : 0;
  };
  stage_ = static_cast<Stage>(number("stage"));
  step_ = number("step");
  if (const auto before = progress.numbers.find("stage_seconds"); before != progress.numbers.end())
    seconds_before_ = before->second;
  if (stage_ != Stage::SFT) stage_began_ = std::chrono::steady_clock::now();
  sft_updates_ = number("sft_updates");
  updates_at_version_ = sft_updates_;
  // A checkpoint of an earlier version of Hone does not say where its step began, and has no texts.
  updates_at_step_begin_ =
      progress.numbers.contains("sft_step_begin") ? number("sft_step_begin") : sft_updates_;
  if (const auto random = progress.texts.find(random_key); random != progress.texts.end())
    std::istringstream(random->second) >> random_;
  const auto draws = progress.texts.find(sft_draws_key);
  if (sft_data_ && draws != progress.texts.end()) sft_data_->restore(draws->second);
  const auto place = progress.texts.find(sft_stream_key);
  if (stream_ && place != progress.texts.end()) stream_->restore(place->second);
}

void curriculum::load_reference(const std::filesystem::path& checkpoint) {
  if (trainer_ && has_kl()) trainer_->load_reference(checkpoint);
}

curriculum::numbers describe_batch(const schema::TrainingBatch::Reader& batch) {
  curriculum::numbers n;
  double samples = 0;
  double score = 0;
  double logs = 0;
  double scored_samples = 0;
  std::map<Outcome, double> outcomes;
  for (const auto scored : batch.getGroups()) {
    for (const auto result : scored.getResults()) {
      ++samples;
      ++outcomes[result.getOutcome()];
      score += score_of(result);
      if (score_of(result) <= 0) continue;
      ++scored_samples;
      logs += std::log(result.getScore());
    }
  }
  n["samples"] = samples;
  n["groups"] = static_cast<double>(batch.getGroups().size());
  n["score"] = samples > 0 ? score / samples : 0;
  n["log_speedup"] = scored_samples > 0 ? logs / scored_samples : 0;
  for (const auto& [outcome, count] : outcomes)
    n["share_" + std::string(name_of(outcome))] = count / std::max(1.0, samples);
  return n;
}

}  // namespace hone
