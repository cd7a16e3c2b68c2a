@0x8d24f0c6b17ae935;
# Between a device (or a compiler) and the processes that run programs for it. Framed by a 32-bit length; both directions are
# validated. Bulk data never travel here: they lie in the arena that both sides map. On a CPU that is one file of memory, head
# included; on a GPU device memory by CUDA IPC, and its head a file of its own.

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
    attach @5 :Attach;                        # to a GPU's process, first of all; descriptor: the arena's head
    time @6 :TimeCalls;                       # GPU: run what was staged, each call by itself, by its clocks
    burst @7 :BurstOfCalls;                   # GPU: run what was staged over and over without a pause, by three clocks
  }
}

struct Attach {
  handle @0 :Data $Identity.required;         # of the arena's device memory: a CUipcMemHandle
  bytes @1 :UInt64;
  tools @2 :Data $Identity.required;          # a cubin of the judge's kernels
  spoilSymbol @3 :Text $Identity.required;    # what leaves poison in shared memory
  scrambleSymbol @4 :Text $Identity.required;  # what makes contents readable
}

struct TimeCalls {
  # A call's inputs are unreadable until its turn: no call can do another one's work.
  keys @1 :List(List(UInt64)) $Identity.required;  # for each staged call, for each of its inputs
  cacheBytes @0 :UInt64;                      # the L2 cache's size: it is flushed before each call
  flushes @2 :UInt32;                         # so many times, which is the host's head start
}

struct BurstOfCalls {
  repeats @0 :UInt32;                         # of all staged calls
  traced @1 :Bool;                            # with CUPTI's clock as well
}

struct Fork {
  privateBytes @0 :UInt64;                    # memory that the session may have beside the arena
}

struct Open {
  programs @0 :List(Program) $Identity.required;
  hasObject @1 :Bool;
  judgesCandidate @2 :Bool;                   # false: references, which launch nothing
  kernels @3 :List(Pipeline.Kernel);          # of a cubin
  tf32 @4 :Bool;                              # the variant's settings, as far as they matter while it runs
  cudnnBenchmark @5 :Bool;
  cudaGraph @6 :Bool;

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
  isLast @2 :Bool;                            # the process ends with this: a GPU's context does not survive an error
}
