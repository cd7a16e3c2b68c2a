#pragma once

namespace hone {

// From now on other processes of the same user can neither trace this one nor read its memory, its
// environment and its descriptors in /proc, and it leaves no core. Programs that it starts are not
// affected. A judge has seeds and keys in its memory. Processes with the capability CAP_SYS_PTRACE,
// such as root's, still can.
void forbid_inspection();

}  // namespace hone
