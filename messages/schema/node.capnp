@0xa75f20c3e8b9164d;
# What nodes tell each other and those who ask.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("hone::schema");
using Identity = import "identity.capnp";
using Task = import "task.capnp";
using Training = import "training.capnp";

struct JoinRequest {
  schemaVersion @0 :UInt32;
  judgeVersion @1 :UInt32;
  node @2 :Text $Identity.required;
  deviceTypes @3 :List(Task.DeviceType) $Identity.required;
}

struct ActorStatus {
  name @0 :Text $Identity.required;           # "compiler 0", "queue verify"
  room @1 :Text;                              # "generator", "compiler", ...: what busy shares are summed over
  device @2 :Text;
  queued @3 :UInt32;                          # waiting work
  inFlight @4 :UInt32;                        # given out or being done
  processed @5 :UInt64;
  failed @6 :UInt64;
  restarts @7 :UInt32;
  busySeconds @8 :Float64;
  aliveSeconds @9 :Float64;
}

struct NodeStatus {
  node @0 :Text $Identity.required;
  address @1 :Text;
  schemaVersion @2 :UInt32;
  judgeVersion @3 :UInt32;
  actors @4 :List(ActorStatus);
  counters @5 :List(Training.NamedNumber);
  tasks @6 :List(TaskStatus);
  stage @7 :Text;
  version @8 :UInt64;
  step @9 :UInt32;
  steps @10 :UInt32;                          # planned for the stage
  deviceTypes @11 :List(Task.DeviceType);

  struct TaskStatus {
    name @0 :Text $Identity.required;
    deviceType @1 :Text;
    variants @2 :UInt64;
    best @3 :Float64;
  }
}
