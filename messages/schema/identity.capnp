@0xb3d1a2f04c6e9817;
# Declarations that all records share: identities, and the annotation of required fields.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("hone::schema");

annotation required @0xe8d1f7b24a90c365 (field) :Void;
# Marks a pointer field that must be set. A record from a network or a disk without it is refused.

struct Id {
  # 128 bits. Ids of tasks, variants and artifacts, and all ids of a corpus document's group, are
  # the XXH3-128 of contents; all others are random.
  high @0 :UInt64;
  low @1 :UInt64;
}
