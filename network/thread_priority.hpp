#pragma once

namespace hone {

// Lowers the priority of the calling thread, which serves strangers or copies files: messages of
// actors go first.
void let_messages_pass();

}  // namespace hone
