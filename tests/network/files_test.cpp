// Tests of copies of folders from another node.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <mutex>
#include <thread>

#include "network/blocking_io.hpp"
#include "tests/support/served_files.hpp"
#include "tests/support/temporary_folder.hpp"

namespace hone {
namespace {

using namespace testing_support;
using testing::HasSubstr;

class Files : public testing::Test {
 protected:
  // Offers these files as "some/folder".
  void offer(std::vector<offered_file> files) {
    folder_ = std::make_shared<offered_folder>(make_offered_folder(std::move(files)));
  }
  copy_sources::make_connection connect() {
    return [this] { return served_.connect(); };
  }
  std::filesystem::path copy() {
    return copy_folder({connect()}, "some/folder", cache_.path(), std::chrono::seconds(5));
  }
  static std::size_t entries(const std::filesystem::path& folder) {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
  }

  std::shared_ptr<const offered_folder> folder_;
  temporary_folder cache_;
  served_files served_{[this](const std::string& name) {
    return name == "some/folder" ? folder_ : std::shared_ptr<const offered_folder>();
  }};
};

TEST_F(Files, AreCopiedInPieces) {
  const std::string large = random_text(2 * piece_bytes + 12345, 1);
  const std::string even = random_text(piece_bytes, 2);
  offer({text_file("a", "short"), text_file("large", large), text_file("even", even),
         text_file("nothing", "")});
  const std::filesystem::path there = copy();
  EXPECT_EQ(read_file(there / "a"), "short");
  EXPECT_EQ(read_file(there / "large"), large);
  EXPECT_EQ(read_file(there / "even"), even);
  EXPECT_TRUE(std::filesystem::is_empty(there / "nothing"));
  EXPECT_EQ(entries(there), 4U);
  EXPECT_EQ(served_.connections, 1);
}

TEST_F(Files, ThatAreThereAlreadyAreNotCopiedAgain) {
  offer({text_file("a", "first")});
  const auto first = copy();
  folder_copy again({connect()}, "some/folder", cache_.path());
  EXPECT_TRUE(again.proceed()) << "the contents are enough";
  EXPECT_EQ(again.folder(), first);
  EXPECT_EQ(again.bytes_copied(), 0U);
  offer({text_file("a", "other")});
  EXPECT_NE(copy(), first) << "the same name, and other bytes";
  EXPECT_EQ(read_file(first / "a"), "first");
}

TEST_F(Files, ACopyOfTheRightSizeWithOtherBytesIsCopiedAgain) {
  const std::string large = random_text(2 * piece_bytes + 12345, 1);
  offer({text_file("large", large)});
  const auto first = copy();
  std::ofstream(first / "large", std::ios::binary) << std::string(large.size(), '\0');
  EXPECT_EQ(copy(), first);
  EXPECT_EQ(read_file(first / "large"), large) << "a node that loses power may leave zeros";
}

TEST_F(Files, ADamagedPieceIsCopiedAgain) {
  const std::string text = random_text(piece_bytes + 5, 3);
  offered_file file = text_file("a", text);
  const auto reads = std::make_shared<std::atomic<int>>(0);
  file.read = [reads, read = file.read](std::uint64_t offset, char* to, std::size_t size) {
    read(offset, to, size);
    // The first two reads make the contents; the fourth is of the second piece.
    if (++*reads == 4) to[size / 2] = static_cast<char>(to[size / 2] ^ 1);
  };
  offer({file});
  EXPECT_EQ(read_file(copy() / "a"), text);
  EXPECT_EQ(*reads, 5);
}

TEST_F(Files, ThatStayDamagedAreRefused) {
  offered_file file = text_file("a", "what was promised");
  const auto reads = std::make_shared<std::atomic<int>>(0);
  file.read = [reads, read = file.read](std::uint64_t offset, char* to, std::size_t size) {
    read(offset, to, size);
    if (++*reads > 1) to[0] = 'W';
  };
  offer({file});
  try {
    copy();
    FAIL();
  } catch (const copy_refused& e) {
    EXPECT_THAT(e.what(), HasSubstr("not those that it has promised"));
  }
  EXPECT_EQ(entries(cache_.path()), 0U) << "nothing is left of the copy";
}

TEST_F(Files, ACopyGoesOnAfterAConnectionHasEnded) {
  const std::string text = random_text(4 * piece_bytes, 4);
  offer({text_file("a", text)});
  folder_copy copy({connect()}, "some/folder", cache_.path());
  int failures = 0;
  for (bool is_complete = false; !is_complete;) {
    if (copy.bytes_copied() == 2 * piece_bytes && failures == 0) served_.newest.lock()->shut_down();
    try {
      is_complete = copy.proceed();
    } catch (const connection_failed&) {
      ASSERT_LT(++failures, 2);
    }
  }
  EXPECT_EQ(failures, 1);
  EXPECT_EQ(served_.connections, 2);
  EXPECT_EQ(copy.bytes_copied(), text.size()) << "what was there is not copied again";
  EXPECT_EQ(read_file(copy.folder() / "a"), text);
}

TEST_F(Files, ThatAreNotOfferedAreRefused) {
  try {
    copy_folder({connect()}, "../secret", cache_.path(), std::chrono::seconds(5));
    FAIL();
  } catch (const copy_refused& e) {
    EXPECT_THAT(e.what(), HasSubstr("there is no ../secret"));
  }
}

TEST_F(Files, WithNamesThatLeaveTheFolderAreRefused) {
  for (const char* name : {"../a", "/tmp/a", "..", "", "b/c"}) {
    offer({text_file(name, "x")});
    EXPECT_THROW(copy(), copy_refused) << name;
  }
  offer({text_file("twice", "x"), text_file("twice", "y")});
  EXPECT_THROW(copy(), copy_refused);
  EXPECT_EQ(entries(cache_.path()), 0U);
}

TEST_F(Files, OfAFolderCanBeReadAfterTheyWereDeleted) {
  temporary_folder folder;
  std::ofstream(folder.path() / "weights") << "bytes";
  std::ofstream(folder.path() / "secret") << "bytes";
  std::filesystem::create_directory(folder.path() / "below");
  folder_ = std::make_shared<offered_folder>(
      open_offered_folder(folder.path(), [](const std::string& name) { return name != "secret"; }));
  std::filesystem::remove(folder.path() / "weights");
  const auto there = copy();
  EXPECT_EQ(read_file(there / "weights"), "bytes");
  EXPECT_EQ(entries(there), 1U);
}

TEST_F(Files, AreServedToSeveralAtOnce) {
  const std::string text = random_text(3 * piece_bytes, 5);
  offer({text_file("a", text)});
  std::vector<std::thread> readers;
  std::atomic<int> same = 0;
  std::mutex connecting;
  for (int i = 0; i < 4; ++i) {
    readers.emplace_back([&] {
      const temporary_folder cache;
      const auto there = copy_folder({[&] {
                                       const std::scoped_lock guard(connecting);
                                       return served_.connect();
                                     }},
                                     "some/folder", cache.path(), std::chrono::seconds(20));
      if (read_file(there / "a") == text) ++same;
    });
  }
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(same, 4);
}

TEST_F(Files, AServerSurvivesWhatIsNoRequest) {
  offer({text_file("a", "short")});
  for (const std::string& bytes :
       {std::string("\xff\xff\xff\x7f", 4), std::string("\x08\0\0\0abcdefgh", 12),
        random_text(1000, 6), std::string("\x04\0\0\0", 4)}) {
    const auto connection = served_.connect();
    std::size_t written = 0;
    (void)connection->write(bytes.data(), bytes.size(), written);
    connection->shut_down();
  }
  record_builder<schema::FileRequest> request;
  request->setFolder("some/folder");
  request->initPiece().setFile(7);
  const auto connection = served_.connect();
  send_request(*connection, request.finish());
  EXPECT_THAT(std::string(view(receive_reply(*connection, std::chrono::seconds(5))->getProblem())),
              HasSubstr("fewer files"));
  EXPECT_EQ(read_file(copy() / "a"), "short");
}

}  // namespace
}  // namespace hone
