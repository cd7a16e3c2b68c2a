@0xd6b8350e9fa17c24;
# Values of the pool that nobody sends: its indexes and its book-keeping. Keys are written down in storage/keys.hpp.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("hone::schema");
using Identity = import "identity.capnp";

struct PoolFormat {
  version @0 :UInt32;                         # another one is refused
  judgeVersion @1 :UInt32;
  headVersion @2 :UInt64;                     # of the policy; training goes on from here
  nextVersion @3 :UInt64;                     # never reused
  nextReady @4 :UInt64;
  hasHead @5 :Bool;
}

struct PendingWork {
  # Work that has been promised and has not come back. The key says for which variant, device type, judge and scope.
  taskId @0 :Identity.Id $Identity.required;
  measurementId @1 :Identity.Id $Identity.required;
  attempt @2 :UInt32;
  verified @3 :Bool;
  wanted @4 :UInt32;                          # measurements, those that are there included
  groups @5 :List(Identity.Id) $Identity.required;  # wait for it
  population @6 :UInt32;                      # island that the variant joins
}

struct RolloutPlace {
  groupId @0 :Identity.Id $Identity.required;
  index @1 :UInt32;
}

struct GroupProgress {
  # Where a group is on its way to the learner.
  state @0 :State;
  readySequence @1 :UInt64;                   # its key among the ready ones
  trainedBy @2 :UInt64;                       # the version that a step over it made

  enum State {
    pending @0;                               # evaluations are missing
    ready @1;
    trained @2;
    dropped @3;                               # too old when its turn came, or nothing to learn from
  }
}

struct ReadyGroup {
  groupId @0 :Identity.Id $Identity.required;
}

struct IndexEntry {
  variantId @0 :Identity.Id $Identity.required;
  score @1 :Float64;
}

struct IndexSlot {
  # Where a variant stands in its population: the way back from the variant to its entry.
  bucket @0 :UInt32;
  ordinal @1 :UInt32;
  score @2 :Float64;
}

struct BucketStatistics {
  count @0 :UInt32;
  scoreSum @1 :Float64;
}

struct Islands {
  populations @0 :List(UInt32) $Identity.required;  # the population that now lives on each island
  next @1 :UInt32;                                  # population number, never reused
  accepted @2 :UInt64;                              # variants since the last reset
}
