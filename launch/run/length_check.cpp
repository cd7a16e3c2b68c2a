#include "launch/run/length_check.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>
#include <variant>

#include "messages/record.hpp"
#include "policy/decoder_config.hpp"
#include "policy/text/text_codec.hpp"
#include "results/printing.hpp"
#include "tasks/variant_document.hpp"

namespace hone {
namespace {

// The document of a task that has the most tokens.
struct longest_document {
  std::size_t tokens = 0;  // the end's token included
  const corpus_document* document = nullptr;
};

// Tasks whose texts are turned into tokens.
constexpr std::size_t max_checked_tasks = 1000;

using documents_by_task = std::map<std::string, std::vector<const corpus_document*>>;

// Returns the tasks that prompts are written for; of very many, those whose reference and longest
// document have the most bytes.
std::vector<std::shared_ptr<const task>> tasks_with_long_texts(const task_table& tasks,
                                                               documents_by_task& documents) {
  std::vector<std::pair<std::size_t, std::shared_ptr<const task>>> sized;
  for (const auto& t : tasks.all()) {
    if (tasks.role_of(t->id) == task_role::sample) continue;
    std::size_t longest = 0;
    for (const corpus_document* document : documents[t->name])
      longest = std::max(longest, document->text.size());
    sized.emplace_back(t->reference.size() + longest, t);
  }
  if (sized.size() > max_checked_tasks) {
    std::stable_sort(sized.begin(), sized.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    sized.resize(max_checked_tasks);
  }
  std::vector<std::shared_ptr<const task>> chosen;
  for (auto& [size, t] : sized) chosen.push_back(std::move(t));
  return chosen;
}

// Returns the prompt of a task that shows the document as often as a draw has exemplars.
std::string prompt_with_exemplars(const task& t, const prompt_template& prompts,
                                  const corpus_document* shown, std::uint32_t exemplars) {
  record_builder<schema::Draw> draw;
  draw->setDeviceType("a device");
  prompt_facts facts = facts_for(t, *draw.finish());
  if (shown != nullptr) {
    const auto parsed = parse_variant_document(shown->text);
    if (const auto* document = std::get_if<variant_document>(&parsed))
      facts.exemplars.assign(
          exemplars, show_variant(1.0, document->options, document->cuda, document->python));
  }
  return prompts.render(facts);
}

std::string tokens_text(std::size_t tokens) { return std::to_string(tokens) + " tokens"; }

void append(std::vector<std::string>& to, const std::vector<std::string>& of_tasks) {
  for (std::string& line : shortened(of_tasks)) to.push_back(std::move(line));
}

// Compares the lengths of one task after the other, and collects the findings about each by their
// kind.
class length_check {
 public:
  // `answer`: most tokens of a completion. `exemplars`: most of them in a prompt.
  length_check(std::size_t context, std::size_t answer, std::uint32_t exemplars)
      : context_(context),
        answer_(answer),
        exemplars_(exemplars),
        of_context_(", the policy's context has " + std::to_string(context)),
        shortest_prompt_(context) {}

  // `bare` and `full`: tokens of the task's prompt without exemplars and with all of them.
  // `document`: tokens of its longest document.
  void compare(const std::string& task, std::size_t bare, std::size_t full, std::size_t document) {
    shortest_prompt_ = std::min(shortest_prompt_, bare);
    longest_prompt_ = std::max(longest_prompt_, full);
    if (bare + 1 >= context_)
      unanswerable_.push_back(task + ": its prompt has " + tokens_text(bare) + of_context_ +
                              ": no room for an answer");
    if (document > answer_)
      unwritable_.push_back(task + ": its longest document has " + tokens_text(document) +
                            ", more than generation.max_new_tokens = " + std::to_string(answer_) +
                            ": the policy cannot write it to its end. Shorten it or raise the key");
    if (bare + document > context_)
      unlearnable_.push_back(task + ": its prompt and its longest document have " +
                             tokens_text(bare + document) + of_context_ +
                             ": what is beyond is not learned. Shorten it or take a policy with a "
                             "longer context (configs/policies/small has 4096)");
    if (full + answer_ > context_ && bare + answer_ <= context_)
      crowded_.push_back(task + ": with " + std::to_string(exemplars_) +
                         " exemplars, its prompt and an answer of generation.max_new_tokens have "
                         "up to " +
                         tokens_text(full + answer_) + of_context_ +
                         ": exemplars are left out where they do not fit");
    if (bare + answer_ > context_ && bare + 1 < context_)
      cut_.push_back(task + ": its prompt has " + tokens_text(bare) + " without exemplars" +
                     of_context_ + ": answers end after " + tokens_text(context_ - bare) +
                     ", before generation.max_new_tokens");
  }

  length_findings findings() const {
    length_findings found;
    found.max_prompt = longest_prompt_;
    append(found.problems, unanswerable_);
    append(found.warnings, unwritable_);
    append(found.warnings, unlearnable_);
    append(found.notes, crowded_);
    append(found.notes, cut_);
    found.notes.push_back("prompts have " + std::to_string(shortest_prompt_) + " to " +
                          tokens_text(longest_prompt_) + ", " + std::to_string(exemplars_) +
                          " exemplars included; answers have at most " + std::to_string(answer_) +
                          ", the context has " + std::to_string(context_));
    return found;
  }

 private:
  std::size_t context_;
  std::size_t answer_;
  std::uint32_t exemplars_;
  std::string of_context_;
  std::size_t shortest_prompt_;
  std::size_t longest_prompt_ = 0;
  std::vector<std::string> unanswerable_;
  std::vector<std::string> unwritable_;
  std::vector<std::string> unlearnable_;
  std::vector<std::string> crowded_;
  std::vector<std::string> cut_;
};

}  // namespace

length_findings check_lengths(const configuration& c, const task_table& tasks,
                              const prompt_template& prompts,
                              const std::vector<corpus_document>& documents) {
  const std::filesystem::path folder = c.policy.folder;
  const auto context =
      static_cast<std::size_t>(decoder_config::load(folder / "config.json").context);
  const text_codec codec = text_codec::load(folder, c.policy.chat);
  const bool shows = c.pool.storage.exemplars.method != exemplar_method::none;
  const std::uint32_t exemplars = shows ? c.pool.storage.exemplars.count : 0;
  documents_by_task by_task;
  for (const corpus_document& document : documents) by_task[document.task].push_back(&document);
  length_check check(context, static_cast<std::size_t>(c.generation.options.max_new_tokens),
                     exemplars);
  for (const auto& t : tasks_with_long_texts(tasks, by_task)) {
    longest_document its;
    for (const corpus_document* document : by_task[t->name]) {
      const std::size_t tokens = codec.encode_answer(document->text).size();
      if (tokens > its.tokens) its = {tokens, document};
    }
    const auto length = [&](std::uint32_t shown) {
      return codec.encode_prompt(prompt_with_exemplars(*t, prompts, its.document, shown)).size();
    };
    check.compare(t->name, length(0), length(exemplars), its.tokens);
  }
  return check.findings();
}

}  // namespace hone
