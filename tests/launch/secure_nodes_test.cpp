// Tests of who is let into a run, and of nodes with certificates whose links and heads fail.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "network/identity.hpp"
#include "tests/support/nodes.hpp"

namespace hone {
namespace {

using namespace testing_support;
using testing::HasSubstr;

class SecureNodes : public Nodes {
 protected:
  SecureNodes() {
    make_authority(folder_ / "ca");
    head_ = make_identity(folder_ / "ca", "head", identity_role::head);
    node_ = make_identity(folder_ / "ca", "gpus", identity_role::node);
  }
  std::vector<std::string> secure(std::vector<std::string> more = {},
                                  const std::string& listen = "127.0.0.1:0") const {
    more.insert(more.end(), {"--set", "node.listen=" + listen, "--set",
                             "node.identity=\"" + head_.string() + "\""});
    return helpless(more);
  }

  std::filesystem::path head_;
  std::filesystem::path node_;
};

TEST_F(SecureNodes, JoinWithACertificate) {
  program p(secure());
  program helper(node(address(), "helper", {"--identity", node_.string()}));
  EXPECT_TRUE(wait_for_versions(3)) << p.out() << p.err() << helper.out() << helper.err();
  const auto of_folder = run_hone({"status", "--dir", run_folder().string()});
  EXPECT_THAT(of_folder.out, HasSubstr("helper")) << of_folder.err;
  const auto by_address =
      run_hone({"status", "--connect", address(), "--identity", node_.string()});
  EXPECT_EQ(by_address.code, 0) << by_address.err;
  EXPECT_NE(run_hone({"status", "--connect", address()}).code, 0) << "it shows no certificate";
}

TEST_F(SecureNodes, ComeBackAfterAFreezeAndAfterDeathsOfTheHead) {
  const std::vector<std::string> signs = {"--identity", node_.string(), "--heartbeat",
                                          "0.1",        "--silence",    "0.6"};
  const std::vector<std::string> of_head = {"--set", "node.heartbeat_s=0.1", "--set",
                                            "node.silence_s=0.6"};
  const std::string port = std::to_string(free_port());
  program helper(node("127.0.0.1:" + port, "helper", signs));
  for (int life = 0; life < 4; ++life) {
    auto options = of_head;
    if (life > 0) options.emplace_back("--resume");
    program p(secure(options, "127.0.0.1:" + port));
    ASSERT_TRUE(wait_for_versions(versions() + 2)) << p.out() << p.err() << helper.out();
    if (life == 1) {
      // The steps so far may be of groups that were judged before.
      ASSERT_TRUE(says(helper, "helper has joined the run again")) << helper.out();
      ASSERT_TRUE(wait_for_versions(versions() + 2)) << p.out() << helper.out();
      helper.send(SIGSTOP);
      EXPECT_TRUE(says(p, "helper is gone")) << p.out();
      helper.send(SIGCONT);
      ASSERT_TRUE(wait_for_versions(versions() + 2)) << p.out() << helper.out() << helper.err();
    }
    p.send(SIGKILL);
    p.wait();
  }
  EXPECT_FALSE(helper.has_ended()) << helper.out() << helper.err();
  expect_nothing_lost();
}

TEST_F(SecureNodes, WithoutACertificateAreRefused) {
  program p(secure());
  const auto stranger =
      run_hone({"node", "--join", address(), "--devices", "simulated:a", "--wait", "1"});
  EXPECT_NE(stranger.code, 0);
  EXPECT_THAT(stranger.err, HasSubstr("--identity"));
  EXPECT_TRUE(says(p, "it does not speak TLS"));
}

TEST_F(SecureNodes, LeaveWhenTheirCertificateIsRevoked) {
  program p(secure());
  program helper(node(address(), "helper", {"--identity", node_.string(), "--patience", "2"}));
  ASSERT_TRUE(wait_for_versions(2)) << p.out() << p.err() << helper.out() << helper.err();
  ASSERT_EQ(run_hone({"identity", "revoke", (folder_ / "ca").string(), "gpus"}).code, 0);
  EXPECT_NE(helper.wait(std::chrono::seconds(20)).value_or(0), 0) << helper.out();
  EXPECT_TRUE(says(p, "certificate revoked")) << p.out();
  EXPECT_THAT(helper.err(), HasSubstr("this identity is refused"));
}

// A node in a separate network namespace, at the other end of a link that can be cut. Needs root
// and the program ip.
class NodesBehindALink : public SecureNodes {
 protected:
  void SetUp() override {
    const std::string number = std::to_string(getpid() % 200);
    head_host_ = "10.213." + number + ".1";
    link_ = "hone" + number + "a";
    name_space_ = "hone-test-" + number;
    const std::string other = "hone" + number + "b";
    const std::string inside = "ip netns exec " + name_space_ + " ip ";
    has_link_ = geteuid() == 0 && does("ip netns add " + name_space_) &&
                does("ip link add " + link_ + " type veth peer name " + other) &&
                does("ip link set " + other + " netns " + name_space_) &&
                does("ip addr add " + head_host_ + "/30 dev " + link_) &&
                does("ip link set " + link_ + " up") &&
                does(inside + "addr add 10.213." + number + ".2/30 dev " + other) &&
                does(inside + "link set " + other + " up");
    if (!has_link_) GTEST_SKIP() << "network namespaces cannot be made here: no root, or no ip";
  }
  void TearDown() override {
    does("ip link del " + link_);
    does("ip netns del " + name_space_);
  }
  static bool does(const std::string& command) {
    return std::system((command + " 2>/dev/null").c_str()) == 0;
  }

  bool has_link_ = false;
  std::string head_host_;
  std::string link_;
  std::string name_space_;
};

TEST_F(NodesBehindALink, AreLostWhenItIsCutAndComeBackWhenItHeals) {
  program p(
      secure({"--set", "node.heartbeat_s=0.1", "--set", "node.silence_s=0.6"}, head_host_ + ":0"));
  std::vector<std::string> inside = {"/usr/bin/env", "ip", "netns", "exec", name_space_};
  for (const std::string& word :
       node(address(), "helper",
            {"--identity", node_.string(), "--heartbeat", "0.1", "--silence", "0.6"}))
    inside.push_back(word);
  program helper(inside);
  ASSERT_TRUE(wait_for_versions(versions() + 2)) << p.out() << helper.out() << helper.err();
  for (int cut = 0; cut < 2; ++cut) {
    ASSERT_TRUE(does("ip link set " + link_ + " down"));
    EXPECT_TRUE(eventually([&] { return lines_with(p.out(), "helper is gone") == cut + 1; }))
        << "no reset tells the head of it: " << p.out();
    EXPECT_TRUE(eventually([&] { return lines_with(helper.out(), "is lost") == cut + 1; }));
    ASSERT_TRUE(does("ip link set " + link_ + " up"));
    EXPECT_TRUE(eventually([&] {
      return lines_with(helper.out(), "has joined the run again") == cut + 1;
    })) << helper.out()
        << p.out();
    EXPECT_TRUE(wait_for_versions(versions() + 2)) << p.out() << helper.out();
  }
  p.send(SIGKILL);
  p.wait();
  expect_nothing_lost();
}

TEST_F(SecureNodes, OfOtherMachinesNeedAnIdentity) {
  const auto run_there = run({"--set", "node.listen=0.0.0.0:0"});
  EXPECT_NE(run_there.code, 0);
  EXPECT_THAT(run_there.err + run_there.out, HasSubstr("hone identity"));
  const auto node_there =
      run_hone({"node", "--join", "192.0.2.1:4242", "--devices", "simulated:a"});
  EXPECT_NE(node_there.code, 0);
  EXPECT_THAT(node_there.err, HasSubstr("hone identity"));
}

}  // namespace
}  // namespace hone
