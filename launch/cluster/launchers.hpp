#pragma once

#include <memory>

#include "launch/cluster/launcher.hpp"

namespace hone {

// Nodes are processes of this machine, in separate sessions.
std::unique_ptr<launcher> make_local_launcher(const node_pool& pool, const launch_context& context);

// A node is a process on a host that ssh reaches without a password. Its log comes back through an
// ssh client that stays on this machine, detached. The node ends when that client does. The
// identity goes over standard input into a new folder below /tmp on the host that only the user may
// read; it is removed when the node ends or is stopped. At most 8 connections are made at a time,
// because sshd refuses more than 10 that are not yet authenticated.
std::unique_ptr<launcher> make_ssh_launcher(const node_pool& pool, const launch_context& context);

// A node is a batch job. The run's folder must be on a file system that the machines of the
// partition share: the job reads its identity there and writes its log there. Slurm itself sends
// SIGKILL to a cancelled job, after KillWait of its configuration.
std::unique_ptr<launcher> make_slurm_launcher(const node_pool& pool, const launch_context& context);

// The nodes are the pods of one StatefulSet, and their identity is a Secret. Kubernetes starts a
// node that has ended again. Logs stay in the cluster: `kubectl logs POD`.
std::unique_ptr<launcher> make_kubernetes_launcher(const node_pool& pool,
                                                   const launch_context& context);

}  // namespace hone
