@0x9f6b03d85a7ce241;
# Records that pass between the stages that judge a variant: jobs go forward, and one evaluation
# goes back to the pool.

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
  # Travels unchanged through all stages, so that no stage has to ask an earlier one. Only the
  # attempt changes, when a work queue hands out the job of a lost worker again.
  measurementId @0 :Identity.Id $Identity.required;
  # The same for all attempts of a job: the pool keeps the first result under it.

  variantId @1 :Identity.Id $Identity.required;
  taskId @2 :Identity.Id $Identity.required;
  deviceType @3 :Text $Identity.required;
  attempt @4 :UInt32;                         # from 1
  deadlineMs @5 :UInt64;
  # Unix time in ms after which the pool hands out the job again.

  bestScore @6 :Float64;
  # Best score known for this task and device type when the job was sent; 0: none.

  verified @7 :Bool;
  # The verdict is known to be ok: the variant is compiled and measured, but not verified.

  scope @8 :UInt32;
  # Evaluations of different scopes are kept apart (messages/names.hpp).

  submittedMs @9 :UInt64;
  # Unix time in ms at which the pool sent the job.

  knownScore @10 :Float64;
  # Median score of the earlier measurements, against which a further one is confirmed; 0: none.

  timed @11 :Bool = true;
  # Without it, the job ends with the verdict: an ok variant gets no measurement and no score.

  screened @12 :Bool;
  # The measurement is a screening: shorter, less precise and never confirmed.

  task @13 :Task.Task;
  # The task, with the bytes of its data files, if it was handed in late: nodes do not have it.

  client @14 :Text;                           # whose job it is; empty: the run's
  priority @15 :UInt8;                        # jobs of a higher priority go first
}

struct CompileJob {
  header @0 :JobHeader $Identity.required;
  settings @1 :Text;
  cuda @2 :Text;
  python @3 :Text;
  deviceType @4 :Task.DeviceType $Identity.required;
  # The compiler's node need not have a device of this type.
}

struct Kernel {
  name @0 :Text $Identity.required;           # as the host program launches it
  parameters @1 :List(Parameter);
  registers @2 :UInt32;                       # CUDA only: per thread
  staticSharedBytes @3 :UInt32;               # CUDA only: per block
  localBytes @4 :UInt32;                      # CUDA only: stack frame per thread
  maxThreadsPerBlock @5 :UInt32;              # CUDA only
  symbol @6 :Text;                            # CUDA only: name in the cubin, mangled for C++
  cooperative @7 :Bool;
  # CUDA only: the kernel synchronizes its whole grid, so all blocks must run at once.

  spilledBytes @8 :UInt32;                    # CUDA only: registers spilled, among localBytes

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
  # A compiled variant for one device type.
  id @0 :Identity.Id $Identity.required;      # hash of device type, settings, python and code
  variantId @1 :Identity.Id $Identity.required;
  deviceType @2 :Text $Identity.required;
  settings @3 :Text;
  python @4 :Text;
  code @5 :Data;                              # shared object or cubin; empty without a cuda block
  kernels @6 :List(Kernel);
  compileMs @7 :Float64;
  log @8 :Text;                               # the compiler's warnings
  programId @9 :Identity.Id;
  # Hash of settings, host program and compiled code without names, comments and unreachable code.
}

struct VerifyJob {
  header @0 :JobHeader $Identity.required;
  artifact @1 :Artifact $Identity.required;
}

struct Verdict {
  outcome @0 :Outcome;
  kind @1 :Text;                              # outcome cheating: name of the exploit's class
  message @2 :Text;
  rounds @3 :UInt32;                          # number of rounds of inputs that passed
  worstElement @4 :Float64;                   # largest |a - b| over the error allowed there
  worstRelativeL2 @5 :Float64;                # up to judge 24: relative L2 error of an output
  seed @6 :UInt64;
  verifyMs @7 :Float64;
  worstRms @8 :Float64;                       # largest root mean square error over the allowed one
}

struct BenchmarkJob {
  header @0 :JobHeader $Identity.required;
  artifact @1 :Artifact $Identity.required;
  verdict @2 :Verdict $Identity.required;
  first @3 :Measurement;
  # If set, the job confirms this measurement, whose score is surprising; the work queue prefers
  # another device than the one that took it. If it is not set and the header has a knownScore, the
  # benchmarker sets it to a stand-in with that score.
}

struct CaseTiming {
  # Timing of one timed case. Times are microseconds per call.
  sizes @0 :Text;                             # "M=512 N=512"
  referenceUs @1 :Float64;                    # median
  candidateUs @2 :Float64;                    # median
  buckets @3 :List(Float64);                  # speed-up of each of the seven buckets of rounds
  speedup @4 :Float64;                        # median of the buckets
  intervalLow @5 :Float64;                    # 95 % interval of the median speed-up
  intervalHigh @6 :Float64;                   # 95 % interval of the median speed-up
  rounds @7 :UInt32;
  referenceWallUs @8 :Float64;                # CPU: median in wall time. GPU: in a burst
  candidateWallUs @9 :Float64;                # CPU: median in wall time. GPU: in a burst
  floorUs @10 :Float64;
  # Least time a call could take: the bytes that it must write over the peak bandwidth.

  baselines @11 :List(Baseline);
  burstUs @12 :Float64;                       # GPU: in a burst, by events
  burstSpanUs @13 :Float64;
  # GPU: in a burst that CUPTI traces, by CUPTI, from the first to the last work on any stream;
  # 0: not measured.

  tracedUs @14 :Float64;                      # GPU: in the burst that CUPTI traces, by events
  bytes @15 :UInt64;
  # Bytes of all inputs, parameters and outputs, which a call reads and writes at least; 0: not
  # counted.

  kernels @16 :List(KernelUse);
  # GPU: the candidate's own kernels, each as it was last launched, by a call or by `prepare`.

  flops @17 :UInt64;
  # GPU: floating-point operations of the reference's matrix products and convolutions; 0: none, or
  # not counted.

  burstBusyUs @18 :Float64;
  # GPU: the part of burstSpanUs during which any kernel, copy or fill ran.

  throttled @20 :Text;
  # GPU: what slowed it down before or after the timing, as NVML reports it ("hardware thermal");
  # empty: nothing.

  unseenUs @19 :Float64;
  # GPU: unseen time, the time per call that the host sees beyond the clock that scores, candidate
  # minus reference.

  missingBaselines @21 :List(MissingBaseline);
  # GPU: the baselines that have no time here; none if baselines are not timed at all, and in
  # records of versions before 7.

  struct Baseline {
    name @0 :Text $Identity.required;
    us @1 :Float64;                           # median per call
  }

  struct MissingBaseline {
    name @0 :Text $Identity.required;
    why @1 :Text;                             # one or more lines
  }

  struct KernelUse {
    name @0 :Text $Identity.required;
    blocks @1 :UInt64;                        # in the grid
    threads @2 :UInt32;                       # per block
    registers @3 :UInt32;                     # per thread
    staticSharedBytes @4 :UInt32;             # per block
    dynamicSharedBytes @5 :UInt32;            # per block
    localBytes @6 :UInt32;                    # per thread: spilled registers and arrays
    spilledBytes @8 :UInt32;                  # per thread: the stored registers among localBytes
    occupancy @7 :Float64;
    # Threads of this kernel that fit on a multiprocessor, over the threads that it can hold at all.
  }
}

struct Measurement {
  id @0 :Identity.Id $Identity.required;
  outcome @1 :Outcome;
  kind @2 :Text;                              # outcome cheating: name of the exploit's class
  message @3 :Text;
  score @4 :Float64;
  # Geometric mean over the timed cases, rounded to two decimals toward 1; 0 unless ok.

  scoreRaw @5 :Float64;                       # before rounding
  intervalLow @6 :Float64;                    # 95 % interval of the score
  intervalHigh @7 :Float64;                   # 95 % interval of the score
  cases @8 :List(CaseTiming);
  seed @9 :UInt64;
  device @10 :Text;                           # "cpu:1"
  node @11 :Text;
  toolchain @12 :Text;
  driver @13 :Text;
  judgeVersion @14 :UInt32;
  clockMhzBefore @15 :Float64;                # 0: unknown
  clockMhzAfter @16 :Float64;                 # 0: unknown
  startedMs @17 :UInt64;                      # Unix time in ms
  measureMs @18 :Float64;
  temperatureBefore @19 :Float64;             # Celsius; 0: unknown
  temperatureAfter @20 :Float64;              # Celsius; 0: unknown
  confirmation @21 :Confirmation;             # absent: none was made, or it is recorded itself
  screened @22 :Bool;                         # by the rules of a screening

  struct Confirmation {
    # A later measurement, in other processes, that agreed with this one.
    device @0 :Text;
    scoreRaw @1 :Float64;
    rounds @2 :UInt32;                        # of all cases
    measureMs @3 :Float64;
  }
}

struct Evaluation {
  # On its way to the pool: the result of one job. In the pool: all that is known under one variant,
  # device type, judge version and scope.
  variantId @0 :Identity.Id $Identity.required;
  taskId @1 :Identity.Id $Identity.required;
  deviceType @2 :Text $Identity.required;
  judgeVersion @3 :UInt32;
  scope @4 :UInt32;
  measurementId @5 :Identity.Id $Identity.required;
  attempt @6 :UInt32;
  outcome @7 :Outcome;
  kind @8 :Text;                              # outcome cheating: name of the exploit's class
  message @9 :Text;
  score @10 :Float64;                         # median of the measurements' scores; 0: none
  verdict @11 :Verdict;
  measurements @12 :List(Measurement);
  compileMs @13 :Float64;
  closedMs @14 :UInt64;                       # Unix time in ms
  programId @15 :Identity.Id;                 # of the artifact; absent if there is none
}
