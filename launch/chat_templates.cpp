#include "launch/chat_templates.hpp"

#include "launch/files.hpp"
#include "policy/files.hpp"
#include "process/find_program.hpp"

namespace hone {

chat_format find_chat_format(const std::filesystem::path& folder, const std::string& wanted) {
  if (wanted == "plain") return {};
  chat_format found;
  if (may_have_chat_template(folder))
    found = read_chat_template(folder, find_python(),
                               find_python_program("policy/text/chat_format.py"));
  if (found.is_plain() && wanted == "chat")
    throw policy_error(folder.string() + ": has no chat template");
  return found;
}

}  // namespace hone
