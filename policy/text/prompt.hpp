#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "messages/schema/variant.capnp.h"
#include "tasks/settings.hpp"
#include "tasks/task_file.hpp"

namespace hone {

// An exemplar as a prompt shows it.
struct shown_variant {
  double score = 0;
  std::string code;  // the fenced blocks of its document, without prose
};

shown_variant show_variant(double score, const settings& options, std::string_view cuda,
                           std::string_view python);

// An earlier variant that a prompt asks to be made better.
struct shown_attempt {
  std::string outcome;
  std::string message;  // why it failed; empty if it is ok
  std::string profile;  // how it ran, in lines; empty if it was not timed
  shown_variant variant;
};

// Facts that a prompt shows.
struct prompt_facts {
  std::string task_name;
  std::string summary;
  std::string source;  // the task's [source] text; the reference if the task has none
  std::string source_language;
  std::string reference;  // the TorchScript whose arguments a variant takes
  std::string tensors;    // of the reference's arguments: a line each with name, dtype and shape
  std::vector<task_case> cases;
  std::string device_type;
  std::vector<shown_variant> exemplars;  // by ascending score
  std::optional<shown_attempt> attempt;
};

// Returns the facts for a prompt about task `t`, with the device type and the exemplars of `draw`.
// Throws std::runtime_error if the settings of an exemplar are invalid.
prompt_facts facts_for(const task& t, const schema::Draw::Reader& draw);

// Text of a prompt with placeholders for facts and three kinds of sections:
//   {{task}} {{summary}} {{source}} {{source_language}} {{reference}} {{tensors}} {{sizes}}
//   {{device}}
//                                                                        anywhere
//   {{#exemplars}} ... {{number}} {{score}} {{code}} ... {{/exemplars}}  once per exemplar
//   {{^exemplars}} ... {{/exemplars}}                                    if there is no exemplar
//   {{#attempt}} ... {{outcome}} {{message}} {{profile}} {{score}} {{code}} ... {{/attempt}}
//                                                if a variant is to be made better
// A line that holds only the beginning or end mark of a section produces no output. Any other text
// in double braces is an error when the template is read. Immutable after reading.
class prompt_template {
 public:
  // Reads a template from a file or a text; `name` denotes the file in messages. Both throw
  // policy_error, which names the file and the line.
  static prompt_template load(const std::filesystem::path& path);
  static prompt_template parse(const std::string& text, const std::string& name);

  std::string render(const prompt_facts& facts) const;

 private:
  struct node {
    enum class kind { text, fact, exemplars, without_exemplars, attempt };
    kind is = kind::text;
    std::string text;
    std::vector<node> inner;
  };
  static node::kind kind_of_section(std::string_view mark);
  // `section`: the name of the section that is being parsed; empty outside of sections.
  static std::vector<node> parse_nodes(std::string_view text, std::size_t& at,
                                       std::string_view section, const std::string& name);
  static void render_nodes(const std::vector<node>& nodes, const prompt_facts& facts,
                           const shown_variant* exemplar, std::size_t number, std::string& out);

  std::vector<node> nodes_;
};

// Returns a score with two decimals, such as "16.30".
std::string print_score(double score);

}  // namespace hone
