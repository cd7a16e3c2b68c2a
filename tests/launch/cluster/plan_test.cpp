#include <gtest/gtest.h>

#include "launch/cluster/launcher.hpp"

namespace hone {
namespace {

node_pool pool_of(launcher_kind kind) {
  node_pool pool;
  pool.name = "cpus";
  pool.launcher = kind;
  pool.devices = {"cpu", "cuda:1"};
  pool.compilers = 2;
  return pool;
}

std::string plan(const node_pool& pool, std::int64_t count, const std::string& identity = "") {
  launch_context context;
  context.run = "/runs/my run";
  context.join = "10.0.0.1:4242";
  context.identity = identity;
  context.program = "/opt/hone";
  return make_launcher(pool, context)->plan(count);
}

TEST(PlanOfALocalPool, IsALineOfShellPerNode) {
  node_pool pool = pool_of(launcher_kind::local);
  pool.options = {"--name it's"};
  EXPECT_EQ(plan(pool, 2), R"(/opt/hone node --join 10.0.0.1:4242 --name cpus-0 )"
                           R"(--devices cpu,cuda:1 --compilers 2 '--name it'\''s' )"
                           R"(>>'/runs/my run/logs/cpus-0.log' 2>&1 &
/opt/hone node --join 10.0.0.1:4242 --name cpus-1 )"
                           R"(--devices cpu,cuda:1 --compilers 2 '--name it'\''s' )"
                           R"(>>'/runs/my run/logs/cpus-1.log' 2>&1 &
)");
}

TEST(PlanOfAnSshPool, IsTheScriptThatEachHostReads) {
  node_pool pool = pool_of(launcher_kind::ssh);
  pool.hosts = {"n1"};
  pool.setup = "module load cuda";
  EXPECT_EQ(plan(pool, 1, "/runs/id"),
            R"sh(ssh -T -a -x -o BatchMode=yes -o ConnectTimeout=15 -o ServerAliveInterval=15 )sh"
            R"sh(-o ServerAliveCountMax=8 -o ControlMaster=no -o ControlPath=none n1 sh -s )sh"
            R"sh(>>'/runs/my run/logs/cpus-0.log' 2>&1 &
    main() {
    folder=/tmp/hone-NUMBER
    mask=$(umask)
    umask 077
    mkdir "$folder" || exit 73
    trap 'rm -rf "$folder"' EXIT
    finish() { exit "$1"; }
    trap : PIPE
    mkdir "$folder/identity" || finish 73
    cat >"$folder/identity/ca.pem" <<'HONE_END_OF_FILE'
    (contents of /runs/id/ca.pem)
    HONE_END_OF_FILE
    cat >"$folder/identity/certificate.pem" <<'HONE_END_OF_FILE'
    (contents of /runs/id/certificate.pem)
    HONE_END_OF_FILE
    cat >"$folder/identity/key.pem" <<'HONE_END_OF_FILE'
    (contents of /runs/id/key.pem)
    HONE_END_OF_FILE
    umask "$mask"
    {
    module load cuda
    } </dev/null || { echo "hone: the setup of cpus-0 failed" >&2; finish 1; }
    start_of() { sed -n 's/.*) \([^ZX] \)/\1/p' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20; }
    exec 3<&0
    hone node --join 10.0.0.1:4242 --identity /tmp/hone-NUMBER/identity --name cpus-0 )sh"
            R"sh(--devices cpu,cuda:1 --compilers 2 </dev/null 3<&- &
    node=$!
    grace=30
    echo "$node $(start_of "$node")" >"$folder/node"
    trap 'kill -TERM "$node" 2>/dev/null' TERM INT HUP
    {
      while read -r _ <&3; do :; done
      kill -TERM "$node"
      while kill -0 "$node" && [ "$grace" -gt 0 ]; do sleep 1; grace=$((grace - 1)); done
      kill -KILL "$node"
    } >/dev/null 2>&1 &
    watcher=$!
    exec 3<&-
    echo "hone: cpus-0 is process $node on $(uname -n)"
    wait "$node"
    code=$?
    while kill -0 "$node" 2>/dev/null; do
      wait "$node"
      code=$?
    done
    kill "$watcher" 2>/dev/null
    finish "$code"
    }
    main; exit
)sh");
}

TEST(PlanOfASlurmPool, IsAScriptPerJob) {
  node_pool pool = pool_of(launcher_kind::slurm);
  pool.slurm = {"gpu", "lab", "gpu:h200:1", "1-00:00:00", {"#SBATCH --exclusive"}};
  pool.setup = "module load cuda";
  EXPECT_EQ(plan(pool, 1, "/runs/id"),
            R"(sbatch --parsable '/runs/my run/cluster/cpus/cpus-0.sbatch'
    #!/bin/bash
    #SBATCH --job-name=cpus-0
    #SBATCH --output="/runs/my run/logs/cpus-0.log"
    #SBATCH --open-mode=append
    #SBATCH --ntasks=1
    #SBATCH --signal=B:TERM@30
    #SBATCH --partition=gpu
    #SBATCH --account=lab
    #SBATCH --gres=gpu:h200:1
    #SBATCH --time=1-00:00:00
    #SBATCH --exclusive
    {
    module load cuda
    } || { echo "hone: the setup of cpus-0 failed" >&2; exit 1; }
    exec hone node --join 10.0.0.1:4242 --identity /runs/id --name cpus-0 )"
            R"(--devices cpu,cuda:1 --compilers 2
)");
}

TEST(PlanOfAKubernetesPool, IsASecretAndAStatefulSet) {
  node_pool pool = pool_of(launcher_kind::kubernetes);
  pool.kubernetes = {"hone:1", "speed", {{"nvidia.com/gpu.product", "H200"}}, 1, "runner"};
  pool.devices = {"cuda"};
  EXPECT_EQ(plan(pool, 3, "/runs/id"), R"json(kubectl --namespace speed apply -f -
{
  "apiVersion": "v1",
  "kind": "List",
  "items": [
    {
      "apiVersion": "v1",
      "kind": "Secret",
      "metadata": {
        "name": "cpus-identity",
        "labels": {
          "app": "hone",
          "hone-pool": "cpus"
        },
        "annotations": {
          "hone-run": "/runs/my run"
        }
      },
      "stringData": {
        "ca.pem": "(contents of /runs/id/ca.pem)",
        "certificate.pem": "(contents of /runs/id/certificate.pem)",
        "key.pem": "(contents of /runs/id/key.pem)"
      }
    },
    {
      "apiVersion": "apps/v1",
      "kind": "StatefulSet",
      "metadata": {
        "name": "cpus",
        "labels": {
          "app": "hone",
          "hone-pool": "cpus"
        },
        "annotations": {
          "hone-run": "/runs/my run"
        }
      },
      "spec": {
        "serviceName": "cpus",
        "replicas": 3,
        "podManagementPolicy": "Parallel",
        "selector": {
          "matchLabels": {
            "app": "hone",
            "hone-pool": "cpus"
          }
        },
        "template": {
          "metadata": {
            "labels": {
              "app": "hone",
              "hone-pool": "cpus"
            }
          },
          "spec": {
            "terminationGracePeriodSeconds": 30,
            "serviceAccountName": "runner",
            "nodeSelector": {
              "nvidia.com/gpu.product": "H200"
            },
            "containers": [
              {
                "name": "node",
                "image": "hone:1",
                "command": [
                  "hone",
                  "node",
                  "--join",
                  "10.0.0.1:4242",
                  "--identity",
                  "/etc/hone/identity",
                  "--name",
                  "$(POD_NAME)",
                  "--devices",
                  "cuda",
                  "--compilers",
                  "2"
                ],
                "env": [
                  {
                    "name": "POD_NAME",
                    "valueFrom": {
                      "fieldRef": {
                        "fieldPath": "metadata.name"
                      }
                    }
                  }
                ],
                "resources": {
                  "limits": {
                    "nvidia.com/gpu": 1
                  }
                },
                "volumeMounts": [
                  {
                    "name": "identity",
                    "mountPath": "/etc/hone/identity",
                    "readOnly": true
                  }
                ]
              }
            ],
            "volumes": [
              {
                "name": "identity",
                "secret": {
                  "secretName": "cpus-identity",
                  "defaultMode": 256
                }
              }
            ]
          }
        }
      }
    }
  ]
}
)json");
}

}  // namespace
}  // namespace hone
