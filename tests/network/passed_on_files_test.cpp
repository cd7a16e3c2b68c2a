// Tests of copies that nodes take from each other.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <future>

#include "network/acceptor.hpp"
#include "network/connecting.hpp"
#include "network/files/copy_tree.hpp"
#include "network/files/file_server.hpp"
#include "network/files/folder_copy.hpp"
#include "process/replace_file.hpp"
#include "tests/support/served_files.hpp"
#include "tests/support/temporary_folder.hpp"

namespace hone {
namespace {

using namespace testing_support;
using std::chrono::seconds;

constexpr const char* offered = "checkpoints/7";

// A server of files that listens on this machine.
class listening_files {
 public:
  explicit listening_files(file_server::find_folder find) : server(std::move(find)) {
    acceptor_options options;
    options.listen = {"127.0.0.1", 0};
    options.admit = [this](admitted_peer peer) { server.serve(std::move(peer.connection)); };
    door_ = std::make_unique<acceptor>(std::move(options));
  }
  std::uint16_t port() const { return door_->address().port; }

  file_server server;

 private:
  std::unique_ptr<acceptor> door_;
};

std::shared_ptr<channel> connect_for_test(const std::string& address) {
  return connect_to(parse_address(address), {files_purpose, "a node", 0, {}}, "", seconds(2));
}

class PassedOn : public testing::Test {
 protected:
  // A node that copies the folder and passes it on.
  struct node {
    temporary_folder cache{};
    std::shared_ptr<shared_copies> shared = std::make_shared<shared_copies>();
    listening_files served{[this](const std::string& name) { return shared->find(name); }};
  };

  PassedOn() { head_.server.spread_over_nodes(); }

  std::string head() const { return "127.0.0.1:" + std::to_string(head_.port()); }
  copy_sources sources_of(const node& one) const {
    copy_sources sources{[at = head()] { return connect_for_test(at); }};
    sources.connect_to_node = connect_for_test;
    sources.shared = one.shared;
    sources.port = one.served.port();
    return sources;
  }
  // Makes the node at this port the first of four to ask, so that the fifth copies from it.
  void ask_first(std::uint16_t port) const {
    for (std::uint16_t other = 0; other < 4; ++other) {
      record_builder<schema::FileRequest> request;
      request->setFolder(offered);
      request->setPort(other == 0 ? port : other);
      const auto connection = connect_for_test(head());
      send_request(*connection, request.finish());
      (void)receive_reply(*connection, seconds(5));
    }
  }

  const std::string large_ = random_text(3 * piece_bytes + 12345);
  std::shared_ptr<const offered_folder> folder_ = std::make_shared<offered_folder>(
      make_offered_folder({text_file("a", "short"), text_file("large", large_)}));
  const std::uint64_t bytes_ = large_.size() + 5;
  listening_files head_{[this](const std::string& name) {
    return name == offered ? folder_ : std::shared_ptr<const offered_folder>();
  }};
};

TEST_F(PassedOn, TheFirstNodeSendsAFolderAFewTimesHoweverManyCopyIt) {
  constexpr std::size_t nodes = 14;
  std::vector<std::unique_ptr<node>> all;
  for (std::size_t i = 0; i < nodes; ++i) all.push_back(std::make_unique<node>());
  std::vector<std::future<void>> copies;
  for (const auto& one : all) {
    copies.push_back(std::async(std::launch::async, [this, &one] {
      const auto folder = copy_folder(sources_of(*one), offered, one->cache.path(), seconds(30));
      EXPECT_EQ(read_file(folder / "a"), "short");
      EXPECT_EQ(read_file(folder / "large"), large_);
    }));
  }
  for (auto& one : copies) one.get();
  EXPECT_GE(head_.server.bytes_sent(), 4 * bytes_);
  EXPECT_LE(head_.server.bytes_sent(), 7 * bytes_)
      << "on a busy machine, a node may leave one that is slow";
}

TEST_F(PassedOn, ANodeThatIsGoneCostsNothingButTime) {
  std::uint16_t port = 0;
  {
    const node gone;
    port = gone.served.port();
  }
  ask_first(port);
  const node one;
  folder_copy copy(sources_of(one), offered, one.cache.path());
  while (!copy.proceed()) {
  }
  EXPECT_EQ(read_file(copy.folder() / "large"), large_);
  EXPECT_EQ(copy.bytes_of_nodes(), 0U);
  EXPECT_EQ(head_.server.bytes_sent(), bytes_);
}

TEST_F(PassedOn, AnotherNodeIsNamedInPlaceOfOneThatIsGone) {
  std::uint16_t port = 0;
  {
    const node gone;
    port = gone.served.port();
  }
  const node there;
  ask_first(port);  // the fifth copies from this one
  const auto first = copy_folder(sources_of(there), offered, there.cache.path(), seconds(5));
  std::vector<std::unique_ptr<node>> more;
  std::uint64_t of_nodes = 0;
  for (int i = 0; i < 12; ++i) {
    more.push_back(std::make_unique<node>());
    folder_copy copy(sources_of(*more.back()), offered, more.back()->cache.path());
    while (!copy.proceed()) {
    }
    EXPECT_EQ(read_file(copy.folder() / "large"), large_);
    of_nodes += copy.bytes_of_nodes();
  }
  EXPECT_GE(of_nodes, 8 * bytes_) << "those that come after the places of the four that are gone";
}

TEST_F(PassedOn, WhatANodeHasSpoiltIsTakenFromTheFirstNode) {
  std::string spoilt = large_;
  spoilt[2 * piece_bytes + 17] ^= 1;
  const auto of_another = std::make_shared<offered_folder>(*folder_);
  of_another->files[1] = text_file("large", spoilt);
  const listening_files liar([&](const std::string&) { return of_another; });
  ask_first(liar.port());
  const node one;
  folder_copy copy(sources_of(one), offered, one.cache.path());
  while (!copy.proceed()) {
  }
  EXPECT_EQ(read_file(copy.folder() / "large"), large_);
  EXPECT_EQ(copy.bytes_of_nodes(), 5 + 2 * piece_bytes);
}

TEST_F(PassedOn, WhoDoesNotKnowTheContentsGetsNothing) {
  const node one;
  folder_copy copy(sources_of(one), offered, one.cache.path());
  while (!copy.proceed()) {
  }
  EXPECT_NE(one.shared->find(copy.folder().filename().string()), nullptr);
  EXPECT_EQ(one.shared->find(offered), nullptr);
  EXPECT_EQ(one.shared->find("checkpoints-7"), nullptr);
}

TEST_F(PassedOn, APieceThatIsComingIsWaitedFor) {
  const temporary_folder folder;
  std::ofstream(folder.path() / "large", std::ios::binary) << large_;
  growing_copy copy(copy_record<schema::FolderContents>(*folder_->contents), seconds(30));
  std::string piece(piece_bytes, '\0');
  const auto writing = std::async(std::launch::async, [&] {
    copy.begin_file(folder.path() / "large");
    copy.note(piece_bytes);
  });
  copy.read(0, 0, piece.data(), piece_bytes);
  writing.wait();
  EXPECT_EQ(piece, large_.substr(0, piece_bytes));
}

TEST_F(PassedOn, WhatIsNotThereYetIsAskedForAgainUntilTheCopyIsGivenUp) {
  growing_copy copy(copy_record<schema::FolderContents>(*folder_->contents), seconds(0));
  std::string piece(piece_bytes, '\0');
  EXPECT_THROW(copy.read(0, piece_bytes, piece.data(), piece_bytes), piece_is_coming);
  copy.end();
  EXPECT_THAT([&] { copy.read(0, piece_bytes, piece.data(), piece_bytes); },
              testing::ThrowsMessage<std::runtime_error>(testing::HasSubstr("given up")));
}

TEST_F(PassedOn, ThePolicyStaysOfferedBesideManyVersions) {
  shared_copies shared;
  const auto begin = [&](const std::string& name) {
    shared.begin(name, copy_record<schema::FolderContents>(*folder_->contents));
  };
  begin("policy-1");
  for (int version = 0; version < 9; ++version) begin("checkpoints-" + std::to_string(version));
  EXPECT_NE(shared.find("policy-1"), nullptr);
  EXPECT_NE(shared.find("checkpoints-8"), nullptr);
  EXPECT_EQ(shared.find("checkpoints-5"), nullptr);
}

TEST_F(PassedOn, ACopyThatIsThereAlreadyIsOfferedAndReadEvenIfItsFilesAreReplaced) {
  const node earlier;
  const auto first = copy_folder(sources_of(earlier), offered, earlier.cache.path(), seconds(5));
  const node one;
  copy_sources sources = sources_of(one);
  sources.connect_to_node = nullptr;
  std::filesystem::copy(first, one.cache.path() / first.filename());
  const auto found = copy_folder(sources, offered, one.cache.path(), seconds(5));
  replace_file(found / "a", "other", 0644);  // as adapters get the node's own base
  const auto folder = one.shared->find(found.filename().string());
  ASSERT_NE(folder, nullptr);
  std::string text(5, '\0');
  folder->files[0].read(0, text.data(), text.size());
  EXPECT_EQ(text, "short");
}

TEST(CopyTree, NamesTheNodeThatAskedBefore) {
  copy_tree tree;
  const auto parent = [&](std::uint64_t bytes, int child) {
    return tree.parent_of(bytes < 2 ? "small" : "large", bytes, "n" + std::to_string(child));
  };
  for (int i = 0; i < 4; ++i) EXPECT_EQ(parent(1, i), "");
  for (int i = 4; i < 8; ++i) EXPECT_EQ(parent(1, i), "n0");
  EXPECT_EQ(parent(1, 8), "n1");
  EXPECT_EQ(parent(1, 4), "n0") << "again";
  for (int i = 9; i < 20; ++i) parent(1, i);
  EXPECT_EQ(parent(1, 20), "n4");

  tree.forget("small", "n0");  // the others move up
  EXPECT_EQ(parent(1, 4), "") << "it is the fourth now";
  EXPECT_EQ(parent(1, 5), "n1");
  EXPECT_EQ(parent(1, 21), "n5");
  EXPECT_EQ(parent(1, 0), "") << "a node that was forgotten keeps its place, before its children";

  constexpr std::uint64_t gigabyte = 1'000'000'000;
  EXPECT_EQ(parent(gigabyte, 0), "");
  EXPECT_EQ(parent(gigabyte, 1), "");
  EXPECT_EQ(parent(gigabyte, 2), "n0") << "from the third on, if it is large";
}

}  // namespace
}  // namespace hone
