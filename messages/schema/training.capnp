@0xc48e17f95d3b602a;
# From scored groups to new weights.

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
  results @1 :List(Result) $Identity.required;  # one a rollout, in order

  struct Result {
    outcome @0 :Pipeline.Outcome;
    score @1 :Float64;                        # speed-up; 0 unless ok
  }
}

struct TrainingBatch {
  id @0 :Identity.Id $Identity.required;
  stage @1 :Variant.Stage;
  groups @2 :List(ScoredGroup) $Identity.required;
}

struct TrainingStep {
  # One step along the chain of versions, with the groups that it consumed. Written together with its PolicyVersion.
  version @0 :UInt64;                         # the one that the step made
  parent @1 :UInt64;
  stage @2 :Variant.Stage;
  groups @3 :List(Identity.Id) $Identity.required;
  metrics @4 :List(NamedNumber);
}

struct PolicyVersion {
  version @0 :UInt64;                         # never reused
  parent @1 :UInt64;                          # itself for the first
  stage @2 :Variant.Stage;
  step @3 :UInt32;                            # within the stage; 0: the stage's start
  depth @4 :UInt32;                           # steps from the root along parents
  checkpoint @5 :Text $Identity.required;     # folder, relative to the run directory
  createdMs @6 :UInt64;                       # Unix time
  complete @7 :Bool;                          # the last of its run: nothing follows
}
