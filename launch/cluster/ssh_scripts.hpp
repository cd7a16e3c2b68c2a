#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace hone {

// The scripts that `sh -s` reads on a host. They use POSIX shell, sed, cut and /proc.

// The parts of a start script.
struct ssh_start {
  std::string node;                             // its name
  std::string folder;                           // on the host; must not exist
  std::map<std::string, std::string> identity;  // contents by name of file; empty: no identity
  std::string setup;                            // a line of shell; may be empty
  std::vector<std::string> command;             // hone node ...
};

// Returns the folder of an identity on the host, as the command of an ssh_start names it.
std::string identity_on_host(const std::string& folder);

// Returns a script that makes the folder with the identity, runs the command and removes the
// folder. The command gets SIGTERM when the script's standard input ends, which is when the
// connection does, and SIGKILL after `grace`. The script prints start_notice() once the command
// runs, and ends with its exit code.
std::string print_start_script(const ssh_start& start, std::chrono::milliseconds grace);
std::string start_notice(const std::string& node);

// Returns a script that ends the command of a start script, by SIGTERM and after `grace` by
// SIGKILL, and removes the folder. Does nothing if there is no such folder.
std::string print_stop_script(const std::string& folder, std::chrono::milliseconds grace);

// Returns the contents of an identity's files. Throws std::runtime_error if one is missing.
std::map<std::string, std::string> read_identity(const std::filesystem::path& identity);

}  // namespace hone
