#include "launch/run/length_check.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <variant>

#include "messages/record.hpp"
#include "policy/decoder_config.hpp"
#include "policy/tokenizer.hpp"
#include "tasks/variant_document.hpp"

namespace hone {
namespace {

// The document of a task that has the most tokens.
struct longest_document {
  std::size_t tokens = 0;  // the end's token included
  const corpus_document* document = nullptr;
};

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

}  // namespace

length_findings check_lengths(const configuration& c, const task_table& tasks,
                              const prompt_template& prompts,
                              const std::vector<corpus_document>& documents) {
  const std::filesystem::path folder = c.policy.folder;
  const auto context =
      static_cast<std::size_t>(decoder_config::load(folder / "config.json").context);
  const tokenizer words = tokenizer::load(folder / "tokenizer.json");
  const auto answer = static_cast<std::size_t>(c.generation.options.max_new_tokens);
  const bool shows = c.pool.storage.exemplars.method != exemplar_method::none;
  const std::uint32_t exemplars = shows ? c.pool.storage.exemplars.count : 0;
  std::map<std::string, longest_document> longest;
  for (const corpus_document& document : documents) {
    const std::size_t tokens = words.encode(document.text).size() + 1;
    if (tokens > longest[document.task].tokens) longest[document.task] = {tokens, &document};
  }
  length_findings found;
  std::size_t shortest_prompt = context;
  std::size_t longest_prompt = 0;
  for (const auto& t : tasks.all()) {
    const longest_document& its = longest[t->name];
    const auto length = [&](std::uint32_t shown) {
      return words.encode(prompt_with_exemplars(*t, prompts, its.document, shown)).size();
    };
    const std::size_t bare = length(0);
    const std::size_t full = length(exemplars);
    shortest_prompt = std::min(shortest_prompt, bare);
    longest_prompt = std::max(longest_prompt, full);
    const std::string of_context = ", the policy's context has " + std::to_string(context);
    if (bare + 1 >= context)
      found.problems.push_back(t->name + ": its prompt has " + tokens_text(bare) + of_context +
                               ": no room for an answer");
    if (its.tokens > answer)
      found.warnings.push_back(t->name + ": its longest document has " + tokens_text(its.tokens) +
                               ", more than generation.max_new_tokens = " + std::to_string(answer) +
                               ": the policy cannot write it to its end. Shorten it or raise "
                               "the key");
    if (bare + its.tokens > context)
      found.warnings.push_back(t->name + ": its prompt and its longest document have " +
                               tokens_text(bare + its.tokens) + of_context +
                               ": what is beyond is not learned. Shorten it or take a policy "
                               "with a longer context (configs/policies/small has 4096)");
    if (full + answer > context && bare + answer <= context)
      found.notes.push_back(t->name + ": with " + std::to_string(exemplars) +
                            " exemplars, its prompt and an answer of generation.max_new_tokens "
                            "have up to " +
                            tokens_text(full + answer) + of_context +
                            ": exemplars are left out where they do not fit");
    if (bare + answer > context && bare + 1 < context)
      found.notes.push_back(t->name + ": its prompt has " + tokens_text(bare) +
                            " without exemplars" + of_context + ": answers end after " +
                            tokens_text(context - bare) + ", before generation.max_new_tokens");
  }
  found.notes.push_back("prompts have " + std::to_string(shortest_prompt) + " to " +
                        tokens_text(longest_prompt) + ", " + std::to_string(exemplars) +
                        " exemplars included; answers have at most " + std::to_string(answer) +
                        ", the context has " + std::to_string(context));
  return found;
}

}  // namespace hone
