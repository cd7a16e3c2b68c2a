#pragma once

#include <filesystem>
#include <string>

#include "policy/text/chat_format.hpp"

namespace hone {

// Returns the format in which a policy reads prompts. `folder` is its Hugging Face folder. `wanted`
// is plain, chat, or auto, which is chat if the folder has a chat template. Throws policy_error if
// the template cannot be used, or if there is none for chat.
chat_format find_chat_format(const std::filesystem::path& folder, const std::string& wanted);

}  // namespace hone
