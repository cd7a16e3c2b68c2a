@0xe1190178a88576b6;
# What two nodes say to each other when one copies files of the other (network/files/).

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("hone::schema");
using Identity = import "identity.capnp";

struct FileRequest {
  # Asks for the contents of a folder or, with a piece, for the bytes of that piece.
  folder @0 :Text $Identity.required;         # as the other node calls it
  piece @1 :Piece;
  port @2 :UInt16;
  # Where the asking node passes the folder on to others; 0: nowhere.

  lost @3 :Text;
  # HOST:PORT of a node that was named before and does not send; empty: none.

  struct Piece {
    file @0 :UInt32;                          # index in the contents
    number @1 :UInt32;                        # index in the file's pieces
  }
}

struct FileReply {
  # The bytes of a piece follow behind the reply.
  problem @0 :Text;                           # why there is none; empty: there is one
  contents @1 :FolderContents;
  bytes @2 :UInt64;                           # that follow
  coming @3 :Bool;                            # the piece is not there yet: ask again
  source @4 :Text;
  # HOST:PORT of the node to take the pieces from, if it has them; empty: this one.
}

struct FolderContents {
  files @0 :List(File) $Identity.required;

  struct File {
    name @0 :Text $Identity.required;
    bytes @1 :UInt64;
    pieces @2 :List(Identity.Id) $Identity.required;
    # The hash of each piece, in their order. All but the last have the same size.
  }
}
