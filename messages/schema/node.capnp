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
}

struct ActorStatus {
  name @0 :Text $Identity.required;           # "compiler 0", "queue verify"
  room @1 :Text;                              # "generator", "compiler", ...: what busy shares are summed over
  queued @2 :UInt32;                          # waiting work
  inFlight @3 :UInt32;                        # given out, or being done
  processed @4 :UInt64;
  failed @5 :UInt64;
  restarts @6 :UInt32;                        # how often another actor has taken the name; telemetry's
  busySeconds @7 :Float64;
  aliveSeconds @8 :Float64;
  numbers @9 :List(Training.NamedNumber);
  spans @10 :List(Span);                      # since the last report, as far as they were kept
  rate @11 :Float64;                          # processed a second between the last two reports; telemetry's
  startedUs @12 :UInt64;                      # Unix time, microseconds

  struct Span {
    name @0 :Text $Identity.required;
    startUs @1 :UInt64;                       # Unix time, microseconds
    durationUs @2 :UInt64;
  }
}

struct RunStatus {
  # What only the node of the pool and the learner knows.
  stage @0 :Text;
  version @1 :UInt64;
  step @2 :UInt32;
  inFlight @3 :UInt32;                        # variants being judged
  waitingGroups @4 :UInt32;
  readyGroups @5 :UInt32;
  droppedGroups @6 :UInt64;
  lag @7 :Float64;                            # mean steps that the groups of the last batch were behind
  outcomes @8 :List(Training.NamedNumber);    # of this stage's new programs so far, each as it was first judged
  tasks @9 :List(TaskStatus);
  complete @10 :Bool;

  struct TaskStatus {
    name @0 :Text $Identity.required;
    deviceType @1 :Text;
    variants @2 :UInt64;                      # ok
    best @3 :Float64;
  }
}

struct NodeStatus {
  node @0 :Text $Identity.required;
  schemaVersion @1 :UInt32;
  judgeVersion @2 :UInt32;
  deviceTypes @3 :List(Task.DeviceType);
  actors @4 :List(ActorStatus);
  run @5 :RunStatus;                          # of the node that has the pool
}
