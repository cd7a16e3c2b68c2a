@0xe92c7a6d0b41f358;
# What the policy is shown, what it writes, and how both are kept.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("hone::schema");
using Identity = import "identity.capnp";

enum Stage {
  # The learner's stages, in order, then the comparison of the policies before and after the last one.
  sft @0;
  selfSupervised @1;
  contrastive @2;
  comparison @3;
}

struct Variant {
  # A program, identified by its code alone: the prose around it belongs to the rollout.
  id @0 :Identity.Id $Identity.required;      # of (task id, settings, cuda, python); of the text where that does not parse
  taskId @1 :Identity.Id $Identity.required;
  settings @2 :Text;                          # canonical: one "key = value" a line, sorted, defaults left out
  cuda @3 :Text;
  python @4 :Text;
  problem @5 :Text;                           # not empty: the document did not parse, and why
}

struct Exemplar {
  variantId @0 :Identity.Id $Identity.required;
  score @1 :Float64;                          # speed-up on the draw's device type
  settings @2 :Text;
  cuda @3 :Text;
  python @4 :Text;
}

struct Draw {
  # One prompt's worth of choices by the pool.
  id @0 :Identity.Id $Identity.required;
  taskId @1 :Identity.Id $Identity.required;
  deviceType @2 :Text $Identity.required;
  stage @3 :Stage;
  policyVersion @4 :UInt64;                   # the newest when the draw was made; for a comparison the one to write with
  exemplars @5 :List(Exemplar);
  population @6 :UInt32;                      # the island that the draw's variants join
  seed @7 :UInt64;
  samples @8 :UInt32;                         # completions asked for
}

struct Rollout {
  id @0 :Identity.Id $Identity.required;
  variantId @1 :Identity.Id $Identity.required;
  text @2 :Text $Identity.required;           # the whole document
  tokens @3 :List(UInt32);                    # what was sampled, the end token included where there was one
  logProbabilities @4 :List(Float32);         # natural, of the policy at the sampling temperature before top-p; one a token
  versions @5 :List(VersionRun);              # which weights produced the tokens, run-length coded, in order
  truncated @6 :Bool;                         # the length limit ended it

  struct VersionRun {
    version @0 :UInt64;
    tokens @1 :UInt32;
  }
}

struct RolloutGroup {
  # The completions of one draw: what is recorded, evaluated and trained on together.
  id @0 :Identity.Id $Identity.required;
  origin @1 :Origin;
  draw @2 :Draw $Identity.required;
  prompt @3 :Text;                            # as rendered
  rollouts @4 :List(Rollout) $Identity.required;
  variants @5 :List(Variant) $Identity.required;  # distinct ones
  startedMs @6 :UInt64;                       # Unix time of the draw
  finishedMs @7 :UInt64;                      # of the last completion

  enum Origin {
    policy @0;
    corpus @1;
    comparison @2;                            # never trained on, judged afresh
  }
}
