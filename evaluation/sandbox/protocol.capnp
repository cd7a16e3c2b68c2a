@0x8d24f0c6b17ae935;
# Between a device (or a compiler) and the processes that run programs for it. Framed by a 32-bit length; both directions are
# validated. Bulk data never travel here: they lie in the arena that both sides map.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("hone::schema");
using Identity = import "/messages/schema/identity.capnp";
using Pipeline = import "/messages/schema/pipeline.capnp";

struct Layout {
  dtype @0 :UInt8;                            # hone::dtype
  shape @1 :List(Int64) $Identity.required;
}

struct Command {
  union {
    fork @0 :Fork;                            # to the zygote; descriptors: the session's socket, its arena (optional)
    reap @1 :Int32;                           # to the zygote: kill this process if it lives, and tell how it ended; 0: just answer
    open @2 :Open;                            # to a session; descriptor: the shared object, where there is one
    stage @3 :StageCalls;
    go @4 :Void;                              # run what was staged
  }
}

struct Fork {
  privateBytes @0 :UInt64;                    # memory that the session may have beside the arena
}

struct Open {
  programs @0 :List(Program) $Identity.required;
  hasObject @1 :Bool;
  judgesCandidate @2 :Bool;                   # false: references, which launch nothing

  struct Program {
    source @0 :Text $Identity.required;       # TorchScript with a forward
    inputs @1 :UInt32;
    parameters @2 :UInt32;
  }
}

struct StageCalls {
  program @0 :UInt32;
  inputs @1 :List(Layout) $Identity.required;
  parameters @2 :List(Layout) $Identity.required;
  parameterOffsets @3 :List(UInt64) $Identity.required;   # in the arena
  parametersChanged @4 :Bool;
  calls @5 :List(Call) $Identity.required;
  scratchBegin @6 :UInt64;                    # where tensors of the run may lie
  poisonedEnd @7 :UInt64;                     # up to here scratch memory is poisoned; the child poisons what it uses beyond
  scratchEnd @8 :UInt64;

  struct Call {
    inputOffsets @0 :List(UInt64) $Identity.required;
  }
}

struct Reply {
  union {
    forked @0 :Int32;                         # process id
    ended @1 :Int32;                          # wait status
    opened @2 :Opened;
    staged @3 :Void;
    done @4 :Void;                            # outputs are described in the arena's head
    failed @5 :Failed;
  }
}

struct Opened {
  launches @0 :List(Text) $Identity.required;  # kernels that the first program names
  hasPrepare @1 :Bool;
}

struct Failed {
  outcome @0 :Pipeline.Outcome;
  message @1 :Text $Identity.required;
}
