#pragma once

#include <filesystem>
#include <string>

namespace hone {

// The text that a policy's chat template puts around a user's message, with control tokens. Empty
// texts are the format of a policy that continues plain text.
struct chat_format {
  std::string before;   // in front of the message
  std::string behind;   // between the message and the answer
  std::string end;      // behind the answer; it begins with the token that ends an answer
  bool strips = false;  // the message loses the white space (of ASCII) at its ends

  bool is_plain() const { return before.empty() && behind.empty() && end.empty(); }
  // Returns the text that the policy reads: the message with what surrounds it.
  std::string around(const std::string& message) const;
};

// Returns the format of the chat template in a Hugging Face folder (chat_template.jinja,
// chat_template.json, or the entry of tokenizer_config.json), a plain one if it has none. The
// template is rendered by a Python process with the package jinja2, which comes with
// torch. `program` is policy/text/chat_format.py. Throws policy_error if the template
// is wrong or looks into messages.
chat_format read_chat_template(const std::filesystem::path& folder,
                               const std::filesystem::path& python,
                               const std::filesystem::path& program);

// False if the folder has no file that may hold a chat template.
bool may_have_chat_template(const std::filesystem::path& folder);

// Returns a format as JSON text.
std::string print_chat_format(const chat_format& format);
// Reads such a text from a file. Throws policy_error.
chat_format load_chat_format(const std::filesystem::path& file);

}  // namespace hone
