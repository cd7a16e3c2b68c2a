@0xa75f20c3e8b9164d;
# Records that nodes send to each other, and the status that `hone status` shows.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("hone::schema");
using Identity = import "identity.capnp";
using Task = import "task.capnp";
using Training = import "training.capnp";

struct JoinRequest {
  # Sent by a node that wants to join a run. A node with another version of either kind is refused.
  # So is one whose scores are made up where the run's are measured, and the other way round, and
  # one that times no baselines where the run's reward depends on them.
  schemaVersion @0 :UInt32;
  judgeVersion @1 :UInt32;
  node @2 :Text $Identity.required;           # name of the joining node
  hasRealDevices @3 :Bool;
  hasSimulatedDevices @4 :Bool;
  timesBaselines @5 :Bool = true;
}

struct GeneratorSetup {
  # The settings of a joined node's generators, in addition to the run's configuration. With them,
  # they write as the run's own do.
  prompts @0 :Text $Identity.required;  # the prompt template
  chat @1 :Text $Identity.required;     # the policy's chat format, as JSON
  firstReplica @2 :UInt64;              # number of the node's first generator in the run
}

struct ActorStatus {
  # Counts and spans of one actor, from its start on unless a field says otherwise.
  name @0 :Text $Identity.required;           # "compiler 0", "queue verify"
  room @1 :Text;                              # kind of actor: busy shares are summed by room
  queued @2 :UInt32;                          # work that waits
  inFlight @3 :UInt32;                        # work that is handed out or being done
  processed @4 :UInt64;
  failed @5 :UInt64;
  restarts @6 :UInt32;                        # how often another actor took the name; by telemetry
  busySeconds @7 :Float64;
  aliveSeconds @8 :Float64;
  numbers @9 :List(Training.NamedNumber);     # such as "tokens", "version", "leased_seconds"
  spans @10 :List(Span);                      # since the last report; at most 512
  rate @11 :Float64;
  # Items processed per second between the last two reports; filled in by telemetry.

  startedUs @12 :UInt64;                      # Unix time in microseconds
  deviceType @13 :Text;                       # of verifiers and benchmarkers

  struct Span {
    name @0 :Text $Identity.required;
    startUs @1 :UInt64;                       # Unix time in microseconds
    durationUs @2 :UInt64;
  }
}

struct RunStatus {
  # State of the run as the pool reports it. Only the node that holds the pool has it.
  stage @0 :Text;                             # of learning, of the head
  version @1 :UInt64;                         # the head
  step @2 :UInt32;                            # of the stage
  inFlight @3 :UInt32;                        # variants that are being judged
  waitingGroups @4 :UInt32;                   # for device types that are there
  readyGroups @5 :UInt32;                     # of all stages
  droppedGroups @6 :UInt64;                   # too old to train on, since the process started
  lag @7 :Float64;                            # steps, mean over the last batch's VersionRuns
  outcomes @8 :List(Training.NamedNumber);
  # Samples of this stage by the name of their outcome, since the process started. Samples of a
  # waiting group are not counted yet.

  tasks @9 :List(TaskStatus);                 # a selection, if there are very many
  complete @10 :Bool;                         # the run has ended
  droppedByType @11 :List(Training.NamedNumber);  # droppedGroups by device type

  struct TaskStatus {
    name @0 :Text $Identity.required;
    deviceType @1 :Text;
    variants @2 :UInt64;                      # that are ok
    best @3 :Float64;                         # score of the best variant; 0: none
  }
}

struct NodeStatus {
  node @0 :Text $Identity.required;           # name of the node
  schemaVersion @1 :UInt32;
  judgeVersion @2 :UInt32;
  deviceTypes @3 :List(Task.DeviceType);
  actors @4 :List(ActorStatus);               # without their spans
  run @5 :RunStatus;                          # only of the node that holds the pool
}
