#pragma once

#include <optional>
#include <string>

#include "messages/schema/pipeline.capnp.h"
#include "messages/schema/variant.capnp.h"
#include "storage/inspection.hpp"
#include "ui/html/element.hpp"

// Parts of pages about a variant, which the report has as well.
namespace hone::parts {

// Returns the settings and blocks of a variant with highlighted code; `prefix` begins the ids of
// the lines. `message` is a compiler's: its lines that name lines of a block are shown there.
html::element code_of(const schema::Variant::Reader& v, const std::string& prefix,
                      std::size_t max_lines, const std::string& message = {});

// Returns the blocks of a variant as one text, for a diff.
std::string blocks_of(const schema::Variant::Reader& v);

// Returns the mean log-probability of a rollout's tokens; "-" without tokens.
std::string mean_log_text(const schema::Rollout::Reader& rollout);

// The measurements of an evaluation as a plot.
html::element measurements_of(const schema::Evaluation::Reader& e);

// Where a variant comes from: the first rollout that wrote it.
struct ancestry {
  std::optional<record<schema::Variant>> parent;  // the fastest exemplar that its prompt showed
  double parent_speedup = 0;
  std::string sentence;  // who wrote it
  std::string prose;     // the analysis and the design of its document, of a bounded length
};
// Throws pool_error.
ancestry ancestry_of(const pool_inspector& pool, const variant_id& id);

}  // namespace hone::parts
