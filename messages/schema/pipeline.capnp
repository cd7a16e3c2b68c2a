@0x9f6b03d85a7ce241;
# What passes between the stages that judge a variant: jobs forward, one evaluation back to the pool.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("hone::schema");
using Identity = import "identity.capnp";
using Task = import "task.capnp";

enum Outcome {
  ok @0;
  unparsable @1;
  rejected @2;
  compileError @3;
  launchError @4;
  crash @5;
  timeout @6;
  wrongResult @7;
  cheating @8;
  unstable @9;
  infrastructure @10;
}

struct JobHeader {
  # Travels unchanged through every stage, so that no stage asks an earlier one anything.
  measurementId @0 :Identity.Id $Identity.required;  # of several attempts at one id the pool keeps the first
  variantId @1 :Identity.Id $Identity.required;
  taskId @2 :Identity.Id $Identity.required;
  deviceType @3 :Text $Identity.required;
  attempt @4 :UInt32;                         # from 1
  deadlineMs @5 :UInt64;                      # Unix time after which the pool gives the work out again
  bestScore @6 :Float64;                      # best known for this task and device type; 0: none
  verified @7 :Bool;                          # the verdict is known to be ok: only measure
  scope @8 :UInt32;                           # 0: the pool's own; others: judged afresh, apart from it
  submittedMs @9 :UInt64;                     # Unix time
  knownScore @10 :Float64;                    # median of earlier measurements, which a further one is held against; 0: none
}

struct CompileJob {
  header @0 :JobHeader $Identity.required;
  settings @1 :Text;
  cuda @2 :Text;
  python @3 :Text;
  deviceType @4 :Task.DeviceType $Identity.required;  # a compiler need not have such a device
}

struct Kernel {
  name @0 :Text $Identity.required;           # as the host program launches it
  parameters @1 :List(Parameter);
  registers @2 :UInt32;                       # CUDA only, as the following
  staticSharedBytes @3 :UInt32;
  localBytes @4 :UInt32;
  maxThreadsPerBlock @5 :UInt32;
  symbol @6 :Text;                            # in the cubin, where C++ names are mangled
  cooperative @7 :Bool;                       # synchronises its whole grid, so all blocks must run at once
  spilledBytes @8 :UInt32;                    # a thread: of registers, part of localBytes

  struct Parameter {
    kind @0 :Kind;
    bytes @1 :UInt32;
    enum Kind {
      pointer @0;
      integer @1;
      floating @2;
      boolean @3;
      other @4;                               # a struct by value: no host program can pass one
    }
  }
}

struct Artifact {
  # A compiled variant for one type of device.
  id @0 :Identity.Id $Identity.required;      # of contents
  variantId @1 :Identity.Id $Identity.required;
  deviceType @2 :Text $Identity.required;
  settings @3 :Text;
  python @4 :Text;
  code @5 :Data;                              # shared object or cubin; empty without a cuda block
  kernels @6 :List(Kernel);
  compileMs @7 :Float64;
  log @8 :Text;                               # the compiler's warnings
}

struct VerifyJob {
  header @0 :JobHeader $Identity.required;
  artifact @1 :Artifact $Identity.required;
}

struct Verdict {
  outcome @0 :Outcome;
  kind @1 :Text;                              # under cheating: the fixed name
  message @2 :Text;
  rounds @3 :UInt32;                          # checks that ran
  worstElement @4 :Float64;                   # largest |a - b| over what was allowed there
  worstRelativeL2 @5 :Float64;
  seed @6 :UInt64;
  verifyMs @7 :Float64;
}

struct BenchmarkJob {
  header @0 :JobHeader $Identity.required;
  artifact @1 :Artifact $Identity.required;
  verdict @2 :Verdict $Identity.required;
  first @3 :Measurement;                      # set: a surprising score is being confirmed, if possible not where it was taken
}

struct CaseTiming {
  sizes @0 :Text;                             # "N=512 M=512"
  referenceUs @1 :Float64;                    # median microseconds a call
  candidateUs @2 :Float64;
  buckets @3 :List(Float64);                  # speed-up of each of the seven buckets
  speedup @4 :Float64;                        # median of the buckets
  intervalLow @5 :Float64;                    # 95 % interval of the median speed-up
  intervalHigh @6 :Float64;
  rounds @7 :UInt32;
  referenceWallUs @8 :Float64;
  candidateWallUs @9 :Float64;
  floorUs @10 :Float64;                       # no call can be faster: bytes written over peak bandwidth
  baselines @11 :List(Baseline);
  trainUs @12 :Float64;                       # GPU: a call of many without a pause, by events
  trainSpanUs @13 :Float64;                   # by CUPTI, over all streams; 0: not taken
  tracedUs @14 :Float64;                      # by events, while CUPTI looks on
  bytes @15 :UInt64;                          # of inputs, parameters and outputs: what a call reads and writes at least; 0: not counted
  kernels @16 :List(KernelUse);               # GPU: the candidate's own, each as it was launched last, by a call or by prepare()
  flops @17 :UInt64;                          # GPU: of the reference's products and convolutions; 0: it has none
  trainBusyUs @18 :Float64;                   # by CUPTI: of trainSpanUs, how long any kernel ran
  throttled @20 :Text;                        # GPU: what slowed it down before or after, as NVML says: "hardware thermal"; mostly nothing
  unseenUs @19 :Float64;                      # GPU: how much longer the host waits for a call than its clock says, beyond what it does for the reference's

  struct Baseline {
    name @0 :Text $Identity.required;
    us @1 :Float64;
  }

  struct KernelUse {
    name @0 :Text $Identity.required;
    blocks @1 :UInt64;                        # of its grid
    threads @2 :UInt32;                       # of a block
    registers @3 :UInt32;                     # a thread
    staticSharedBytes @4 :UInt32;
    dynamicSharedBytes @5 :UInt32;
    localBytes @6 :UInt32;                    # a thread: spilled registers and arrays
    spilledBytes @8 :UInt32;                  # of those the registers, as they are stored
    occupancy @7 :Float64;                    # threads that a multiprocessor can hold of it, of those that it can hold at all
  }
}

struct Measurement {
  id @0 :Identity.Id $Identity.required;
  outcome @1 :Outcome;
  kind @2 :Text;
  message @3 :Text;
  score @4 :Float64;                          # geometric mean over timed cases, rounded to two decimals toward 1
  scoreRaw @5 :Float64;
  intervalLow @6 :Float64;
  intervalHigh @7 :Float64;
  cases @8 :List(CaseTiming);
  seed @9 :UInt64;
  device @10 :Text;                           # "cpu:1"
  node @11 :Text;
  toolchain @12 :Text;
  driver @13 :Text;
  judgeVersion @14 :UInt32;
  clockMhzBefore @15 :Float64;
  clockMhzAfter @16 :Float64;
  startedMs @17 :UInt64;                      # Unix time
  measureMs @18 :Float64;
  temperatureBefore @19 :Float64;             # Celsius; 0: unknown
  temperatureAfter @20 :Float64;
}

struct Evaluation {
  # On its way to the pool: one job's result. In the pool: everything known of (variant, device type, judge version, scope).
  variantId @0 :Identity.Id $Identity.required;
  taskId @1 :Identity.Id $Identity.required;
  deviceType @2 :Text $Identity.required;
  judgeVersion @3 :UInt32;
  scope @4 :UInt32;
  measurementId @5 :Identity.Id $Identity.required;
  attempt @6 :UInt32;
  outcome @7 :Outcome;
  kind @8 :Text;
  message @9 :Text;
  score @10 :Float64;                         # median of the measurements' scores; 0 unless ok
  verdict @11 :Verdict;
  measurements @12 :List(Measurement);
  compileMs @13 :Float64;
  closedMs @14 :UInt64;                       # Unix time
}
