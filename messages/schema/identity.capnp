@0xb3d1a2f04c6e9817;
# What every record shares: identities, and the mark of a field without which a record is refused at the door.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("hone::schema");

annotation required @0xe8d1f7b24a90c365 (field) :Void;
# A pointer field that must be set in bytes from a network or a disk.

struct Id {
  # 128 bits: XXH3-128 of contents (tasks, variants, artifacts) or random (everything else).
  high @0 :UInt64;
  low @1 :UInt64;
}
