#include "actors/error_text.hpp"

#include <algorithm>
#include <utility>

namespace hone {
namespace {

// "request_timeout" becomes "request timeout".
std::string words_of(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

}  // namespace

std::string text_of(const caf::actor_system& system, const caf::error& error) {
  if (!error) return "it has ended";  // that has no context
  const caf::message& context = error.context();
  if (context.match_elements<std::string>()) return context.get_as<std::string>(0);
  if (error == caf::sec::request_timeout) return "there was no answer in time";
  if (error == caf::sec::request_receiver_down) return "the other end has ended";
  if (error == caf::exit_reason::unhandled_exception) return "it failed unexpectedly";
  if (error == caf::exit_reason::remote_link_unreachable) return "its node cannot be reached";
  if (error.category() == caf::atom("system"))
    return words_of(caf::to_string(static_cast<caf::sec>(error.code())));
  if (error.category() == caf::atom("exit"))
    return words_of(caf::to_string(static_cast<caf::exit_reason>(error.code())));
  return system.render(error);
}

}  // namespace hone
