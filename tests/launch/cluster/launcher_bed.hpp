#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "launch/cluster/launcher.hpp"
#include "tests/support/temporary_folder.hpp"

namespace hone::testing_support {

// Where launchers are tried.
enum class bed_kind { local, ssh, ssh_hosts, slurm, slurm_box, kubernetes, kubernetes_box };
const char* name_of(bed_kind kind);

// A place for one launcher with everything that it needs: a stand-in for hone, and stand-ins for
// the programs that the launcher calls, which come first in PATH while the bed lives. Three kinds
// have the real programs: the hosts of `ssh_hosts` are network namespaces with an sshd each,
// `slurm_box` is a Slurm of two machines, and `kubernetes_box` has kubectl for an API whose pods
// are processes. Only one bed lives at a time.
class launcher_bed {
 public:
  explicit launcher_bed(bed_kind kind);
  ~launcher_bed();
  launcher_bed(const launcher_bed&) = delete;
  launcher_bed& operator=(const launcher_bed&) = delete;

  // Returns why this kind of bed cannot be made on this machine; empty if it can.
  static std::string problem_of(bed_kind kind);

  node_pool pool;          // named "cpus", whose nodes run the stand-in
  launch_context context;  // with an identity whose key is "key of cpus"

  // The address of the machine that a head belongs on, and a command as it is run there.
  std::string head_host() const;
  std::vector<std::string> at_head(std::vector<std::string> command) const;

  // The folder in which stand-ins leave their notes.
  std::filesystem::path notes() const { return folder_ / "notes"; }
  std::filesystem::path path(const std::string& name) const { return folder_ / name; }

  // Waits until the node has told its process, which it does when it is ready to be stopped, and
  // returns it. `before` is what it was before the node was started again. 0: it did not.
  pid_t process_of(const std::string& node, pid_t before = 0) const;
  // Returns the lines that the node noted under "NODE.KIND"; waits for them as process_of() does.
  std::vector<std::string> note(const std::string& node, const std::string& kind) const;

 private:
  bed_kind kind_;
  temporary_folder folder_;
  std::string old_path_;
  std::string prefix_;  // of the names of network namespaces
};

}  // namespace hone::testing_support
