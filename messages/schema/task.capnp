@0xd0a54be35f28c1a6;
# Tasks, and the device types on which their variants are scored.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("hone::schema");
using Identity = import "identity.capnp";

struct Task {
  id @0 :Identity.Id $Identity.required;      # hash of the text and the data files' names and bytes
  name @1 :Text $Identity.required;
  text @2 :Text $Identity.required;           # the task file, unchanged
  dataFiles @3 :List(DataFile);
  heldOut @4 :Bool;                           # the run only evaluates it
  isSample @5 :Bool;                          # of the stream: only documents are judged
  isLate @6 :Bool;                            # handed in by a client: it travels with its jobs

  struct DataFile {
    name @0 :Text $Identity.required;         # as the task file names it
    bytes @1 :Data $Identity.required;
    # Safetensors; empty between nodes, which copy them as files (launch/task_copies.hpp).
  }
}

struct DeviceType {
  # The devices whose scores are comparable with each other.
  name @0 :Text $Identity.required;
  # "cpu-intel-xeon-gcc12.2", "h200-sm90-580.159-cu130", "simulated-a"

  kind @1 :Kind;
  target @2 :Text;                            # for the compiler: options of g++, or "sm_90a"

  enum Kind {
    cpu @0;
    cuda @1;
    simulated @2;
    # Has declared latencies and speed-ups, which are never mixed with measured scores.
  }
}
