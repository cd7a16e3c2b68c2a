@0x8d24f0c6b17ae935;
# The protocol between a device (or a compiler) and the processes that run programs for it. A 32-bit
# length precedes every message, and messages are validated in both directions. Bulk data never
# travel here: they lie in the arena that both sides map. On a CPU the arena is one memory file,
# which includes the head. On a GPU the arena is device memory that is shared by CUDA IPC, and its
# head is a memory file.

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
    fork @0 :Fork;
    # To the zygote. Descriptors: the session's socket, and optionally its arena.

    reap @1 :Int32;
    # To the zygote: kill this process if it lives, and reply with its wait status. 0: only reply.

    open @2 :Open;
    # To a session. Descriptor: the shared object or cubin, if there is one.

    stage @3 :StageCalls;

    go @4 :Void;
    # Run the staged calls. On a CPU, an empty message precedes each call and follows it, so that
    # the parent can write the inputs of a call when its turn has come.

    attach @5 :Attach;
    # The first command to a process on a GPU. Descriptor: the arena's head.

    time @6 :TimeCalls;
    # GPU: run the staged calls and time each call by itself.

    burst @7 :BurstOfCalls;
    # GPU: run the staged calls repeatedly without a pause, and time all of them by three clocks.

    study @8 :StudyCalls;
    # References only: run the one staged call several times, with rounding noise.

    measureTurns @9 :Void;
    # To the zygote: measure what passing the turn takes.

    takeTurns @10 :Void;
    # Python modules on a GPU: run the staged calls, each when its turn has come, which
    # arena_head::turns says.
  }
}

struct Attach {
  handle @0 :Data $Identity.required;         # CUipcMemHandle of the arena's device memory
  bytes @1 :UInt64;                           # size of the arena
  tools @2 :Data $Identity.required;          # cubin of the judge's kernels
  spoilSymbol @3 :Text $Identity.required;    # kernel that leaves poison in shared memory
  scrambleSymbol @4 :Text $Identity.required;  # kernel that makes inputs readable

  begins @5 :Data;
  # Python modules: CUipcEventHandle of the event that precedes a call.
}

struct TimeCalls {
  # The inputs of a call are unreadable until its turn, so that no call can do the work of another.
  keys @1 :List(List(UInt64)) $Identity.required;
  # The key of each input, by staged call.

  cacheBytes @0 :UInt64;
  # Size of the L2 cache, which is flushed before each call.

  flushes @2 :UInt32;
  # Number of flushes before each call. They give the host its head start.
}

struct BurstOfCalls {
  repeats @0 :UInt32;                         # of all staged calls
  traced @1 :Bool;                            # also time the burst by CUPTI's clock
  warmUps @2 :UInt32;                         # calls before the burst
}

struct StudyCalls {
  # The fields of hone::rounding_noise and hone::decision_use.
  runs @0 :List(Run) $Identity.required;
  tf32 @1 :Bool;
  isSparse @2 :Bool;
  hasSmallInputs @3 :Bool;

  struct Run {
    amplitude @0 :Float64;
    seed @1 :UInt64;
    wide @2 :Bool;                            # in float64
    decisions @3 :Decisions;
  }

  enum Decisions {
    ignore @0;
    record @1;
    replay @2;
  }
}

struct Fork {
  privateBytes @0 :UInt64;
  # Most memory of the session outside the arena, in addition to the zygote's. For Python modules,
  # which cannot find out how much they have: the session's whole address space.
}

struct Open {
  programs @0 :List(Program) $Identity.required;
  hasObject @1 :Bool;

  judgesCandidate @2 :Bool;
  # False for references, which launch no kernels.

  kernels @3 :List(Pipeline.Kernel);
  # The kernels of a cubin.

  tf32 @4 :Bool;
  cudnnBenchmark @5 :Bool;
  cudaGraph @6 :Bool;
  # The settings of the variant that take effect while it runs.

  cudnnTf32 @7 :Bool;
  # Convolutions may use TF32 even if products may not.

  compiled @8 :Text;
  # GPU, references only: a shared object to run instead of the first program. Empty: none.

  struct Program {
    source @0 :Text $Identity.required;
    # TorchScript with a function forward(), or a Python module.

    inputs @1 :UInt32;
    parameters @2 :UInt32;

    taskModule @3 :Text;
    # Python modules: the text of the task's module, whose get_init_inputs() gives the arguments of
    # the constructor.

    parameterNames @4 :List(Text);
    # Python modules of the judge: the tensors that they show as parameters.
  }
}

struct StageCalls {
  program @0 :UInt32;
  inputs @1 :List(Layout) $Identity.required;
  parameters @2 :List(Layout) $Identity.required;
  parameterOffsets @3 :List(UInt64) $Identity.required;  # in the arena
  parametersChanged @4 :Bool;
  calls @5 :List(Call) $Identity.required;

  scratchBegin @6 :UInt64;
  # Start of the scratch memory for the run's tensors.

  poisonedEnd @7 :UInt64;
  # Scratch memory before this offset is poisoned. The child poisons the memory beyond that it uses,
  # and poisoned_tail_bytes behind it.

  scratchEnd @8 :UInt64;
  poison @9 :UInt8;
  # Byte of the scratch memory's poison, and of shared memory's. CPU sessions only.

  rowMajorOutputs @10 :UInt64;
  # Bit i: output i of a call is converted to row-major order, within the call.

  seed @11 :UInt64;
  # Python modules: the seed of the constructor that makes the parameters.

  struct Call {
    inputOffsets @0 :List(UInt64) $Identity.required;  # in the arena
  }
}

struct Reply {
  union {
    forked @0 :Int32;                         # process id
    ended @1 :Int32;                          # wait status
    opened @2 :Opened;
    staged @3 :Void;
    done @4 :Void;                            # the arena's head describes the outputs
    failed @5 :Failed;
    turnCosts @6 :TurnCosts;
  }
}

struct TurnCosts {
  # Processor time of the processes other than the parent, in nanoseconds.
  ofCall @0 :Float64;                         # of receiving a call's turn and passing it back
  ofKernels @1 :Float64;                      # of letting the kernels' process run once

  ofHarness @2 :Float64;
  # Of what a session does for a call of a Python module in addition, with cold caches.
}

struct Opened {
  launches @0 :List(Text) $Identity.required;  # kernels that the first program launches
  hasPrepare @1 :Bool;                        # of the first program

  kernelProcess @2 :Int32;
  # The process that runs the kernels of a session on a CPU; 0 if there is none.

  convolutions @3 :UInt32;                    # in the text of the first program's forward()

  normalForm @4 :Identity.Id $Identity.required;
  # Hash of the first program without its names.
}

struct LoadedKernels {
  # From the process of a CPU session's kernels to the session.
  kernels @0 :List(Pipeline.Kernel) $Identity.required;  # names and parameters alone
  problem @1 :Text;                           # why they could not be loaded; empty if they were
}

struct Failed {
  outcome @0 :Pipeline.Outcome;
  message @1 :Text $Identity.required;

  isLast @2 :Bool;
  # The process ends after this reply: the context of a GPU does not survive an error.
}
