@0xe92c7a6d0b41f358;
# Draws, and the variants, rollouts and groups that are written for them.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("hone::schema");
using Identity = import "identity.capnp";

enum Stage {
  # Stages of learning, in order. `comparison` compares the policies before and after `contrastive`.
  sft @0;
  selfSupervised @1;
  contrastive @2;
  comparison @3;
  validation @4;                              # of draws alone: held-out tasks, during other stages
  service @5;                                 # of draws alone: programs that a client handed in
}

struct Variant {
  # A program, identified by its code alone: the prose around the code belongs to the rollout.
  id @0 :Identity.Id $Identity.required;
  # Hash of (task id, settings, cuda, python), or of the document if it does not parse.

  taskId @1 :Identity.Id $Identity.required;
  settings @2 :Text;
  # In canonical form: one "key = value" per line, sorted by key, without defaults.

  cuda @3 :Text;                              # empty: no cuda block
  python @4 :Text;
  problem @5 :Text;                           # why the document does not parse; empty: it parses
  isUnsupported @6 :Bool;                     # with a problem: Hone cannot judge what it may do
}

struct Exemplar {
  variantId @0 :Identity.Id $Identity.required;
  score @1 :Float64;                          # speed-up on the draw's device type
  settings @2 :Text;
  cuda @3 :Text;
  python @4 :Text;
}

struct Attempt {
  # An earlier variant of the policy's own that a prompt asks to be made better.
  variantId @0 :Identity.Id $Identity.required;
  settings @1 :Text;
  cuda @2 :Text;
  python @3 :Text;
  outcome @4 :Text;                           # its name
  message @5 :Text;                           # why it failed; empty if it is ok
  score @6 :Float64;                          # speed-up; 0 unless ok
  profile @7 :Text;                           # how it ran, in lines; empty if it was not timed
}

struct Draw {
  # One prompt's worth of choices by the pool.
  id @0 :Identity.Id $Identity.required;
  taskId @1 :Identity.Id $Identity.required;
  deviceType @2 :Text $Identity.required;
  stage @3 :Stage;
  policyVersion @4 :UInt64;
  # The head when the draw was made. In a comparison, the version that must write the completions.

  exemplars @5 :List(Exemplar);               # by rising score
  population @6 :UInt32;
  # Number of the population that the draw's variants join; 0 unless the exemplar method is
  # `islands`.

  seed @7 :UInt64;
  samples @8 :UInt32;                         # number of completions to write
  arm @9 :Arm;
  turn @10 :UInt32;                           # 0: a new variant; n: a better one than turn n - 1's
  attempt @11 :Attempt;                       # that of the turn before; absent in turn 0
  comparedAt @12 :UInt32;
  # The head when the comparison or validation began. It keeps the evaluations of each apart.

  comparison @13 :UInt32;
  # Index of the draw in its comparison, which the draws of all compared versions share.

  enum Arm {
    # How the completions of a comparison are written. All other draws are `sampled`.
    sampled @0;                               # at the run's temperature, with exemplars
    bare @1;                                  # at the run's temperature, without exemplars
    greedy @2;                                # the most likely tokens, with exemplars
  }
}

struct Rollout {
  id @0 :Identity.Id $Identity.required;
  variantId @1 :Identity.Id $Identity.required;
  text @2 :Text $Identity.required;           # the whole document
  tokens @3 :List(UInt32);                    # sampled tokens, including the end token if sampled
  logProbabilities @4 :List(Float32);
  # One per token: natural logarithm, under the distribution that the token was sampled from.

  versions @5 :List(VersionRun);
  # Versions of the weights that produced the tokens, run-length coded, in the order of the tokens.

  truncated @6 :Bool;                         # the length limit ended the completion

  struct VersionRun {
    version @0 :UInt64;
    tokens @1 :UInt32;                        # number of consecutive tokens
  }
}

struct RolloutGroup {
  # The rollouts of one draw, which are recorded, evaluated and trained on together.
  id @0 :Identity.Id $Identity.required;
  origin @1 :Origin;
  draw @2 :Draw $Identity.required;
  prompt @3 :Text;                            # as rendered
  rollouts @4 :List(Rollout) $Identity.required;
  variants @5 :List(Variant) $Identity.required;
  # The distinct variants of the rollouts. Empty in a stored group: the pool stores variants apart.

  startedMs @6 :UInt64;                       # Unix time in ms at which the prompt was rendered
  finishedMs @7 :UInt64;                      # Unix time in ms of the last completion
  tokensRemoved @8 :Bool;
  # The pool has removed the rollouts' tokens and log-probabilities: nothing can train on the group.

  timed @9 :Bool = true;
  # Without it, the variants are verified and not timed, unless another group wants their scores.

  screened @10 :Bool;
  # The variants are screened: verified in full and measured briefly. The pool sets it.

  request @11 :Request;                       # of a client; absent for all other groups

  enum Origin {
    policy @0;
    corpus @1;
    comparison @2;                            # of a comparison or validation: judged afresh, never
                                              # trained on
    service @3;                               # of a client of `hone serve`
  }

  struct Request {
    # Further results that a client asks for.
    client @0 :Text;                          # its name; jobs of several clients take turns
    priority @1 :UInt8;                       # jobs of a higher priority go first
    expiresMs @2 :UInt64;                     # Unix time in ms at which nobody waits; 0: never
  }
}
