#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace hone {

// Throws policy_error if a file next to a tokenizer.json (tokenizer_config.json, added_tokens.json,
// special_tokens_map.json) gives a policy a token that tokenizer.json does not have, or has under
// another id. The package `transformers` would add it, and cut texts at it. `id_of` returns the id
// that tokenizer.json gives a token, or -1.
void refuse_tokens_elsewhere(const std::filesystem::path& folder,
                             const std::function<std::int64_t(std::string_view)>& id_of);

}  // namespace hone
