#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "messages/schema/variant.capnp.h"
#include "ui/html/element.hpp"

namespace hone {
class tokenizer;
}

// Answers of a policy with tokens shaded by their log-probability.
namespace hone::parts {

// Classes of log-probabilities, the likely ones first: above -0.1, -0.5, -1 and -2, and the rest. A
// number that is not finite is in the last class.
inline constexpr std::size_t shades = 5;
std::size_t shade_of(double log_probability);

// A piece of a text whose tokens have one shade. It holds whole characters: one that several tokens
// write has the shade of the least likely of them, and so have the characters drawn over it.
struct shaded_text {
  std::string bytes;
  std::size_t shade = 0;
  std::size_t tokens = 0;
  double lowest = 0;  // log-probability
  double highest = 0;
  bool is_special = false;  // one token that controls the model, as its vocabulary spells it
};

// Returns the pieces of a rollout's first tokens, neighbors of one shade merged.
std::vector<shaded_text> shaded_pieces(const schema::Rollout::Reader& rollout,
                                       const tokenizer& words, std::size_t max_tokens);

// Returns whether a rollout has tokens with log-probabilities that are those of its text.
bool has_shades(const schema::Rollout::Reader& rollout, const tokenizer& words);

// Returns the text of a rollout's first 4,096 tokens with their shades, and says how many more
// there are. The element takes `max_bytes` of HTML at most, and a few for the notes.
html::element token_text(const schema::Rollout::Reader& rollout, const tokenizer& words,
                         std::size_t max_bytes = 512U << 10U);
// Returns what the shades mean.
html::element shade_legend();

}  // namespace hone::parts
