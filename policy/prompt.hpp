#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "messages/schema/variant.capnp.h"
#include "tasks/settings.hpp"
#include "tasks/task_file.hpp"

namespace hone {

// One earlier variant as a prompt shows it.
struct shown_variant {
  double score = 0;
  std::string code;  // its fenced blocks
};

shown_variant show_variant(double score, const settings& options, std::string_view cuda,
                           std::string_view python);

// What a prompt is made of.
struct prompt_facts {
  std::string task_name;
  std::string summary;
  std::string source;  // what people are shown of the task: its [source], or the reference
  std::string source_language;
  std::string device_type;
  std::vector<shown_variant> exemplars;  // the better one last
};
prompt_facts facts_for(const task& t, const schema::Draw::Reader& draw);

// A prompt's text with places for a draw's facts:
//   {{task}} {{summary}} {{source}} {{source_language}} {{device}}      anywhere
//   {{#exemplars}} ... {{number}} {{score}} {{code}} ... {{/exemplars}}  once for each exemplar
//   {{^exemplars}} ... {{/exemplars}}                                     where there are none
// A line that holds only a section's mark vanishes. Anything else in double braces is refused when
// the template is read.
class prompt_template {
 public:
  // Throws policy_error, naming the file and the line.
  static prompt_template load(const std::filesystem::path& path);
  static prompt_template parse(const std::string& text, const std::string& name);

  std::string render(const prompt_facts& facts) const;

 private:
  struct node {
    enum class kind { text, fact, exemplars, without_exemplars };
    kind is = kind::text;
    std::string text;
    std::vector<node> inner;
  };
  static std::vector<node> parse_nodes(std::string_view text, std::size_t& at, bool inside,
                                       const std::string& name);
  static void render_nodes(const std::vector<node>& nodes, const prompt_facts& facts,
                           const shown_variant* exemplar, std::size_t number, std::string& out);

  std::vector<node> nodes_;
};

// "16.30"
std::string print_score(double score);

}  // namespace hone
