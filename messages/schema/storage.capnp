@0xd6b8350e9fa17c24;
# Values of the pool that are never sent: its indexes and its bookkeeping. storage/keys.hpp defines
# their keys.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("hone::schema");
using Identity = import "identity.capnp";
using Training = import "training.capnp";

struct PoolFormat {
  version @0 :UInt32;                         # of the pool's format; any other one is refused
  judgeVersion @1 :UInt32;
  headVersion @2 :UInt64;                     # version from which training continues
  nextVersion @3 :UInt64;                     # next version's number; numbers are never reused
  nextReady @4 :UInt64;                       # next sequence number of a ready group
  hasHead @5 :Bool;                           # false: no version has been committed yet
  unnamedVersion @6 :UInt64;                  # above every version that a group names
  hasShown @7 :Bool;                          # every group is in the family `shown`
}

struct SampleCounts {
  # How many samples of a stage have which outcome, by the outcome's name. Its key is the stage.
  outcomes @0 :List(Training.NamedNumber);
}

struct PendingWork {
  # A job that was handed out and has no result yet. Its key holds the variant, device type, judge
  # version and scope.
  taskId @0 :Identity.Id $Identity.required;
  measurementId @1 :Identity.Id $Identity.required;
  attempt @2 :UInt32;
  verified @3 :Bool;                          # the verdict is known to be ok
  wanted @4 :UInt32;                          # number of measurements, the existing ones included
  groups @5 :List(Identity.Id) $Identity.required;  # groups that wait for the result
  population @6 :UInt32;                      # population that the variant joins if it is ok
  client @7 :Text;                            # whose job it is; empty: the run's
  priority @8 :UInt8;
}

struct RolloutPlace {
  # The place of a rollout: its group, and its index among the group's rollouts.
  groupId @0 :Identity.Id $Identity.required;
  index @1 :UInt32;
}

struct GroupProgress {
  # How far a group is on its way to the learner.
  state @0 :State;
  readySequence @1 :UInt64;                   # state ready: its key among the ready groups
  trainedBy @2 :UInt64;                       # state trained: version made by the step that took it

  copies @3 :List(UInt32);
  # From state ready on: the indices of the rollouts whose programs copy one that the prompt shows.
  # Absent in groups that an older version judged.

  enum State {
    pending @0;                               # evaluations are missing
    ready @1;                                 # all evaluations are known
    trained @2;                               # a step has consumed it
    dropped @3;                               # too old, or of a comparison that was given up
  }
}

struct ReadyGroup {
  groupId @0 :Identity.Id $Identity.required;
}

struct IndexEntry {
  # A variant at a bucket and an ordinal of a population.
  variantId @0 :Identity.Id $Identity.required;
  score @1 :Float64;
}

struct IndexSlot {
  # The place of a variant in its population, by which its IndexEntry is found.
  bucket @0 :UInt32;
  ordinal @1 :UInt32;
  score @2 :Float64;
}

struct BucketStatistics {
  # The variants of one bucket of scores in one population.
  count @0 :UInt32;
  scoreSum @1 :Float64;
}

struct Islands {
  # The islands of one task and device type.
  populations @0 :List(UInt32) $Identity.required;  # number of each island's present population
  next @1 :UInt32;                            # next population's number; numbers are never reused
  accepted @2 :UInt64;                        # results with outcome ok since the last reset
}
