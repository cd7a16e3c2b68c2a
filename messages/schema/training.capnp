@0xc48e17f95d3b602a;
# Records of training: scored groups, batches, steps and versions of the policy.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("hone::schema");
using Identity = import "identity.capnp";
using Variant = import "variant.capnp";
using Pipeline = import "pipeline.capnp";

struct NamedNumber {
  name @0 :Text $Identity.required;
  value @1 :Float64;
}

struct ScoredGroup {
  group @0 :Variant.RolloutGroup $Identity.required;
  results @1 :List(Result) $Identity.required;  # one per rollout, in the order of the rollouts

  struct Result {
    outcome @0 :Pipeline.Outcome;
    score @1 :Float64;                        # speed-up; 0 unless ok
    speedupsOver @2 :List(NamedNumber);       # speed-up over each baseline, by name; none unless ok
    isCopy @3 :Bool;                          # the program copies one that the prompt shows
  }
}

struct Judgement {
  # The known facts about a group that a client handed in.
  groupId @0 :Identity.Id $Identity.required;
  state @1 :State;
  taskId @2 :Identity.Id $Identity.required;
  submittedMs @3 :UInt64;                     # Unix time in ms
  results @4 :List(Pipeline.Evaluation) $Identity.required;
  # State done: one per rollout, in the order of the rollouts. Otherwise none.

  client @5 :Text;                            # who handed it in

  enum State {
    waiting @0;
    done @1;
    withdrawn @2;                             # by the client, or because it expired
  }
}

struct TrainingBatch {
  id @0 :Identity.Id $Identity.required;
  stage @1 :Variant.Stage;
  groups @2 :List(ScoredGroup) $Identity.required;
}

struct TrainingStep {
  # One step along the chain of versions, with the groups that it consumed. One write stores it
  # together with its PolicyVersion.
  version @0 :UInt64;                         # version that the step made
  parent @1 :UInt64;                          # version that it started from
  stage @2 :Variant.Stage;                    # stage in which it was made
  groups @3 :List(Identity.Id) $Identity.required;
  metrics @4 :List(NamedNumber);
}

struct ComparisonRequest {
  # Policies to compare, and the number of completions of each per task and device type.
  versions @0 :List(UInt64) $Identity.required;         # on the tasks that the run learns from
  heldOutVersions @1 :List(UInt64) $Identity.required;  # on those that are held out
  samples @2 :UInt32;                         # of the arm `sampled`, on the tasks learned from
  bareSamples @3 :UInt32;                     # of the arm `bare`, on the tasks learned from
  greedySamples @4 :UInt32;                   # of the arm `greedy`; at most one if held out
  heldOutSamples @5 :UInt32;                  # of the arm `sampled`, on held-out tasks
  tasks @6 :UInt32;                           # most tasks learned from, spread evenly; 0: all
  heldOutBareSamples @7 :UInt32;              # of the arm `bare`, on held-out tasks
}

struct PolicyVersion {
  version @0 :UInt64;                         # never reused
  parent @1 :UInt64;                          # the first version is its own parent
  stage @2 :Variant.Stage;                    # stage in which training continues from it
  step @3 :UInt32;                            # steps of the stage so far; 0: the stage's start
  depth @4 :UInt32;                           # steps from the root along the chain of parents
  checkpoint @5 :Text $Identity.required;     # folder, relative to the run's folder
  createdMs @6 :UInt64;                       # Unix time in ms
  complete @7 :Bool;                          # the run ended with it
}
