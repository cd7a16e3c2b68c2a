@0xd0a54be35f28c1a6;
# Tasks and the types of device that variants of them are scored on.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("hone::schema");
using Identity = import "identity.capnp";

struct Task {
  id @0 :Identity.Id $Identity.required;      # of the text and of the data files' names and bytes
  name @1 :Text $Identity.required;
  text @2 :Text $Identity.required;           # the task file, unchanged
  dataFiles @3 :List(DataFile);

  struct DataFile {
    name @0 :Text $Identity.required;         # as the task file names it
    bytes @1 :Data $Identity.required;        # safetensors
  }
}

struct DeviceType {
  # What scores are comparable within.
  name @0 :Text $Identity.required;           # "cpu-intel-xeon-gcc12.2", "h200-sm90-580.159-cu130", "simulated-a"
  kind @1 :Kind;
  target @2 :Text;                            # what a compiler needs to know: g++ options, or "sm_90a"

  enum Kind {
    cpu @0;
    cuda @1;
    simulated @2;                             # declared latencies and speed-ups; never mixed with measured scores
  }
}
