@0xc6a0e1b6b4d0a5f3;
# The protocol between a compiler and hone-nvrtc, the warm process that forks its compilations. A
# 32-bit length precedes every message.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("hone::schema");
using Identity = import "/messages/schema/identity.capnp";

struct NvrtcGreeting {
  # The first message from hone-nvrtc, once the library is loaded.
  major @0 :Int32;
  minor @1 :Int32;
  includeFolders @2 :List(Text) $Identity.required;

  problem @3 :Text;
  # Not empty if hone-nvrtc cannot compile; it then ends.
}

struct NvrtcJob {
  headers @0 :List(Text) $Identity.required;
  # Headers of CUDA in front of the block. Jobs with equal headers and options share one precompiled
  # header.

  block @1 :Text $Identity.required;
  options @2 :List(Text) $Identity.required;

  kernels @3 :List(Text) $Identity.required;
  # Kernels as host programs name them: "scale", "tiled<16, float>".

  timeMs @4 :UInt32;
}

struct NvrtcResult {
  compiled @0 :Bool;
  code @1 :Data;                              # cubin
  ptx @2 :Text;
  symbols @3 :List(Text);                     # of the job's kernels, in their order
  log @4 :Text;

  stopped @5 :Text;
  # Not empty if the compilation was stopped: the reason.
}
