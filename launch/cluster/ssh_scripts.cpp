#include "launch/cluster/ssh_scripts.hpp"

#include <fstream>
#include <stdexcept>

#include "launch/cluster/programs.hpp"
#include "network/identity.hpp"

namespace hone {
namespace {

constexpr const char* end_of_file = "HONE_END_OF_FILE";

// Prints the time of the start of process $1, by which a later process of that number is known;
// nothing if it has ended.
constexpr const char* start_of =
    R"sh(start_of() { sed -n 's/.*) \([^ZX] \)/\1/p' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20; }
)sh";

// Remembers the process $node for a stop script, and ends it when the standard input ends, which is
// descriptor 3 here.
constexpr const char* run_and_watch =
    R"sh(echo "$node $(start_of "$node")" >"$folder/node"
trap 'kill -TERM "$node" 2>/dev/null' TERM INT HUP
{
  while read -r _ <&3; do :; done
  kill -TERM "$node"
  while kill -0 "$node" && [ "$grace" -gt 0 ]; do sleep 1; grace=$((grace - 1)); done
  kill -KILL "$node"
} >/dev/null 2>&1 &
watcher=$!
exec 3<&-
)sh";

// A signal interrupts `wait`, hence the loop.
constexpr const char* wait_and_finish =
    R"sh(wait "$node"
code=$?
while kill -0 "$node" 2>/dev/null; do
  wait "$node"
  code=$?
done
kill "$watcher" 2>/dev/null
finish "$code"
}
main; exit
)sh";

constexpr const char* stop_node =
    R"sh(if read -r node start <"$folder/node" && [ -n "$start" ]; then
  lives() { [ "$(start_of "$node")" = "$start" ]; }
  lives && kill -TERM "$node"
  while lives && [ "$tenths" -gt 0 ]; do sleep 0.1; tenths=$((tenths - 1)); done
  lives && kill -KILL "$node"
fi
rm -rf "$folder"
}
stop; exit
)sh";

std::string seconds_of(std::chrono::milliseconds duration) {
  return std::to_string((duration.count() + 999) / 1000);
}

std::string print_identity(const std::map<std::string, std::string>& identity) {
  if (identity.empty()) return "";
  std::string text = "mkdir \"$folder/identity\" || finish 73\n";
  for (const auto& [name, contents] : identity) {
    text += "cat >\"$folder/identity/" + name + "\" <<'" + end_of_file + "'\n" + contents;
    if (!contents.ends_with('\n')) text += "\n";
    text += std::string(end_of_file) + "\n";
  }
  return text;
}

}  // namespace

std::string identity_on_host(const std::string& folder) { return folder + "/identity"; }

std::string start_notice(const std::string& node) { return "hone: " + node + " is process "; }

std::string print_start_script(const ssh_start& start, std::chrono::milliseconds grace) {
  // The shell must have read the whole script before the watcher reads from the same input:
  // therefore the function, and one last line that calls it and exits.
  std::string text = "main() {\nfolder=" + shell_quoted(start.folder) + "\n";
  text += "mask=$(umask)\numask 077\nmkdir \"$folder\" || exit 73\n";
  text += "trap 'rm -rf \"$folder\"' EXIT\n";  // however the script ends
  text += "finish() { exit \"$1\"; }\n";
  text += "trap : PIPE\n";  // the folder is removed even if nobody reads the output
  text += print_identity(start.identity);
  text += "umask \"$mask\"\n";
  if (!start.setup.empty())
    text += "{\n" + start.setup + "\n} </dev/null || { echo \"hone: the setup of " + start.node +
            " failed\" >&2; finish 1; }\n";
  text += start_of;
  text += "exec 3<&0\n" + shell_line(start.command) + " </dev/null 3<&- &\n";
  text += "node=$!\ngrace=" + seconds_of(grace) + "\n";
  text += run_and_watch;
  text += "echo \"" + start_notice(start.node) + "$node on $(uname -n)\"\n";
  text += wait_and_finish;
  return text;
}

std::string print_stop_script(const std::string& folder, std::chrono::milliseconds grace) {
  return "stop() {\nfolder=" + shell_quoted(folder) + "\n[ -d \"$folder\" ] || return 0\n" +
         start_of + "tenths=" + seconds_of(grace) + "0\n" + stop_node;
}

std::map<std::string, std::string> read_identity(const std::filesystem::path& identity) {
  std::map<std::string, std::string> files;
  for (const char* name : identity_files) {
    std::ifstream in(identity / name, std::ios::binary);
    files[name] = std::string{std::istreambuf_iterator<char>(in), {}};
    if (!in || files[name].empty())
      throw std::runtime_error((identity / name).string() + ": cannot be read");
    if (files[name].find(end_of_file) != std::string::npos)
      throw std::runtime_error((identity / name).string() + ": is not a PEM file");
  }
  return files;
}

}  // namespace hone
