#include "ui/parts/token_text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "messages/record.hpp"
#include "policy/text/tokenizer.hpp"
#include "results/printing.hpp"
#include "ui/code/highlight.hpp"
#include "ui/html/characters.hpp"
#include "ui/html/numbers.hpp"

namespace hone::parts {
namespace {

using html::element;

constexpr std::size_t max_tokens_shown = 4096;
constexpr std::array<double, shades - 1> limits = {-0.1, -0.5, -1, -2};

// Returns how many bytes the character needs that begins with this byte, or 1 if none does.
std::size_t length_of(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  if (byte < 0xC2 || byte > 0xF4) return 1;
  return byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2;
}
bool continues(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

// Returns the number of bytes at the end of a text that begin a character and do not end it.
std::size_t unfinished_bytes(std::string_view text) {
  for (std::size_t count = 1; count <= std::min<std::size_t>(3, text.size()); ++count) {
    const char c = text[text.size() - count];
    if (!continues(c)) return length_of(c) > count ? count : 0;
  }
  return 0;
}

// The tokens that wrote some bytes.
struct writers {
  std::size_t tokens = 0;  // that no earlier piece counts
  double lowest = 0;
  double highest = 0;
};

class piece_maker {
 public:
  void add(std::string_view bytes, double log) {
    writers own{1, log, log};
    if (bytes.empty()) return;
    if (!unfinished_.empty()) {
      if (continues(bytes.front())) {
        unfinished_by_.tokens += std::exchange(own.tokens, 0);
        unfinished_by_.lowest = std::min(unfinished_by_.lowest, log);
        unfinished_by_.highest = std::max(unfinished_by_.highest, log);
      }
      const std::size_t length = length_of(unfinished_.front());
      while (!bytes.empty() && continues(bytes.front()) && unfinished_.size() < length) {
        unfinished_ += bytes.front();
        bytes.remove_prefix(1);
      }
      if (bytes.empty() && unfinished_.size() < length) return;
      flush();
    }
    const std::size_t rest = unfinished_bytes(bytes);
    const std::string_view whole = bytes.substr(0, bytes.size() - rest);
    if (!whole.empty()) {
      append(whole, own);
      own.tokens = 0;
    }
    unfinished_ = bytes.substr(whole.size());
    unfinished_by_ = own;
  }

  void add_special(std::string spelling, double log) {
    flush();
    pieces_.push_back({std::move(spelling), shade_of(log), 1, log, log, true});
  }

  std::vector<shaded_text> take() {
    flush();
    return std::move(pieces_);
  }

 private:
  void flush() {
    if (!unfinished_.empty()) append(unfinished_, unfinished_by_);
    unfinished_.clear();
  }

  // Appends whole characters.
  void append(std::string_view bytes, const writers& by) {
    const std::size_t shade = shade_of(by.lowest);
    const bool can_merge = !pieces_.empty() && !pieces_.back().is_special;
    // A mark that is drawn over a character stays with it, so that text() can count such marks.
    const bool is_mark = can_merge && html::is_combining(html::character_at(bytes, 0).code);
    if (can_merge && (is_mark || pieces_.back().shade == shade)) {
      shaded_text& last = pieces_.back();
      last.bytes += bytes;
      last.shade = std::max(last.shade, shade);
      last.tokens += by.tokens;
      last.lowest = std::min(last.lowest, by.lowest);
      last.highest = std::max(last.highest, by.highest);
    } else {
      pieces_.push_back({std::string(bytes), shade, by.tokens, by.lowest, by.highest, false});
    }
  }

  std::vector<shaded_text> pieces_;
  std::string unfinished_;  // the beginning of a character
  writers unfinished_by_;
};

std::string title_of(const shaded_text& piece) {
  const std::string lowest = decimal_text(piece.lowest, 2);
  if (piece.tokens < 2) return lowest;
  return lowest + " to " + decimal_text(piece.highest, 2) + ", " + counted(piece.tokens, "token");
}

std::string class_of(std::size_t shade) { return "p" + std::to_string(shade); }

}  // namespace

std::size_t shade_of(double log_probability) {
  for (std::size_t i = 0; i < limits.size(); ++i) {
    if (std::isfinite(log_probability) && log_probability > limits.at(i)) return i;
  }
  return shades - 1;
}

std::vector<shaded_text> shaded_pieces(const schema::Rollout::Reader& rollout,
                                       const tokenizer& words, std::size_t max_tokens) {
  const auto tokens = rollout.getTokens();
  const auto logs = rollout.getLogProbabilities();
  piece_maker maker;
  for (unsigned i = 0; i < std::min<std::size_t>({tokens.size(), logs.size(), max_tokens}); ++i) {
    // Comparisons with NaN are false, so NaN counts as impossible.
    const double log = std::isnan(logs[i]) ? -std::numeric_limits<double>::infinity() : logs[i];
    if (words.is_special(tokens[i])) {
      maker.add_special(words.spelling(tokens[i]), log);
    } else {
      maker.add(words.decode({tokens[i]}), log);
    }
  }
  return maker.take();
}

bool has_shades(const schema::Rollout::Reader& rollout, const tokenizer& words) {
  const auto tokens = rollout.getTokens();
  if (tokens.size() == 0 || tokens.size() != rollout.getLogProbabilities().size()) return false;
  std::vector<token_id> ids;
  for (const std::uint32_t token : tokens) ids.push_back(token);
  const std::string written = words.decode(ids);
  // The text may have a beginning that the policy was given, and lack what follows the program.
  const std::string_view text = view(rollout.getText());
  return text.ends_with(written) || written.starts_with(text);
}

element token_text(const schema::Rollout::Reader& rollout, const tokenizer& words,
                   std::size_t max_bytes) {
  element made("pre", {{"class", "prose"}}, {});
  const auto pieces = shaded_pieces(rollout, words, max_tokens_shown);
  std::size_t bytes = 0;
  std::size_t shown_tokens = 0;
  std::size_t shown = 0;
  for (; shown < pieces.size(); ++shown) {
    const shaded_text& piece = pieces[shown];
    const std::string_view fits = html::first_written(piece.bytes, max_bytes - bytes);
    if (fits.size() < piece.bytes.size()) {
      made.add(html::text(fits));
      break;
    }
    element span("span",
                 {{"class", class_of(piece.shade) + (piece.is_special ? " special" : "")},
                  {"title", title_of(piece)}},
                 {html::text(piece.bytes)});
    bytes = std::min(max_bytes, bytes + span.str().size());
    shown_tokens += piece.tokens;
    made.add(std::move(span));
  }
  const std::size_t all = rollout.getTokens().size();
  if (shown < pieces.size() || all > max_tokens_shown)
    made.add(element("span", {{"class", "cut"}},
                     {html::text(" … the first " + count_text(shown_tokens) + " of " +
                                 count_text(all) + " tokens")}));
  return made;
}

element shade_legend() {
  constexpr std::array<const char*, shades> meanings = {"above -0.1", "above -0.5", "above -1",
                                                        "above -2", "-2 or less"};
  element made("p", {{"class", "note"}},
               {html::text("Tokens by log-probability, which a tooltip gives: ")});
  for (std::size_t i = 0; i < shades; ++i) {
    made.add({"span", {{"class", class_of(i)}}, {html::text(meanings.at(i))}});
    made.add(html::text(i + 1 < shades ? " · " : "."));
  }
  return made;
}

}  // namespace hone::parts
