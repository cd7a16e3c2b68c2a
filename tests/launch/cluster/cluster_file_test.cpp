#include "launch/cluster/cluster_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "network/address.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/temporary_folder.hpp"

namespace hone {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::temporary_folder;
using testing_support::write_file;

constexpr const char* top = "config = \"run.toml\"\ndirectory = \"runs/x\"\n";

class cluster_file : public testing::Test {
 protected:
  cluster_plan load(const std::string& text) const {
    write_file(folder_ / "cluster.toml", text);
    return load_cluster(folder_ / "cluster.toml");
  }
  // Returns the message of the error, without the folder.
  std::string refusal(const std::string& text) const {
    const auto message = testing_support::refusal_of<std::exception>([&] { load(text); });
    return message.empty() ? "" : message.substr(folder_.path().string().size() + 1);
  }
  // Returns the message about a pool with these lines after its name on line 5.
  std::string pool_refusal(const std::string& lines) const {
    return refusal(std::string(top) + "\n[[pool]]\nname = \"a\"\n" + lines);
  }
  temporary_folder folder_;
};

TEST_F(cluster_file, HasWhatItSays) {
  const cluster_plan plan = load(R"(config = "configs/cpu.toml"
directory = "runs/local"
[head]
listen = "0.0.0.0:47311"
advertise = "10.0.0.1:47311"
set = ["pool.max_groups=8"]
[[pool]]
name = "cpus"
launcher = "ssh"
count = 4
hosts = ["n1", "user@n2.example.org"]
per_host = 2
devices = ["cpu", "cpu"]
compilers = 2
hone = "/opt/hone"
setup = "module load cuda"
options = ["--share-cores"]
[[pool]]
name = "h200"
launcher = "kubernetes"
image = "registry/hone:1"
namespace = "speed"
selector = {"nvidia.com/gpu.product" = "H200"}
gpus = 1
service_account = "hone"
)");
  EXPECT_EQ(plan.config, folder_ / "configs/cpu.toml");
  EXPECT_EQ(plan.directory, std::filesystem::absolute("runs/local"));
  EXPECT_EQ(plan.head.advertise, "10.0.0.1:47311");
  EXPECT_THAT(plan.head.set, ElementsAre("pool.max_groups=8"));
  ASSERT_EQ(plan.pools.size(), 2U);
  EXPECT_EQ(plan.pools[0].launcher, launcher_kind::ssh);
  EXPECT_EQ(plan.pools[0].max_nodes(), 4);
  EXPECT_THAT(plan.pools[0].hosts, ElementsAre("n1", "user@n2.example.org"));
  EXPECT_EQ(plan.pools[0].setup, "module load cuda");
  EXPECT_EQ(plan.pools[1].kubernetes.selector.at("nvidia.com/gpu.product"), "H200");
  EXPECT_EQ(plan.pools[1].count, 1);
  EXPECT_EQ(&plan.pool("h200"), &plan.pools[1]);
  EXPECT_THROW(plan.pool("h100"), std::runtime_error);
}

TEST_F(cluster_file, ListensOnAFreePortOfThisMachineByDefault) {
  const cluster_plan plan = load(top);
  EXPECT_EQ(plan.head.listen, "127.0.0.1:0");
  EXPECT_TRUE(is_loopback(parse_address(plan.head.listen, true)));
}

TEST_F(cluster_file, NamesFileLineKeyAndWhatIsExpected) {
  EXPECT_EQ(refusal("directory = \"x\"\n"), "cluster.toml:1: config: is missing");
  EXPECT_THAT(pool_refusal("launcher = \"lsf\"\n"),
              HasSubstr("cluster.toml:6: pool[0].launcher: is 'lsf', expected local, ssh, slurm or "
                        "kubernetes"));
  EXPECT_THAT(pool_refusal("launcher = \"local\"\ncount = \"two\"\n"),
              HasSubstr("cluster.toml:7: pool[0].count: is a string, expected an integer"));
  EXPECT_THAT(pool_refusal("launcher = \"local\"\ncount = -1\n"),
              HasSubstr("pool[0].count: is -1, expected 0 to 10000"));
  EXPECT_THAT(refusal(std::string(top) + "[head]\nlisten = \"here\"\n"),
              HasSubstr("cluster.toml:4: head.listen: is 'here', expected HOST:PORT"));
}

TEST_F(cluster_file, RefusesKeysOfAnotherLauncher) {
  EXPECT_THAT(pool_refusal("launcher = \"local\"\nhosts = [\"n1\"]\n"),
              HasSubstr("cluster.toml:7: pool[0].hosts: unknown key"));
  EXPECT_THAT(pool_refusal("launcher = \"slurm\"\nimage = \"x\"\n"),
              HasSubstr("pool[0].image: unknown key"));
  EXPECT_THAT(refusal(std::string(top) + "heads = 1\n"),
              HasSubstr("heads: unknown key (did you mean head?)"));
}

TEST_F(cluster_file, RefusesMoreNodesThanHostsTake) {
  EXPECT_THAT(pool_refusal("launcher = \"ssh\"\nhosts = [\"n1\", \"n2\"]\ncount = 3\n"),
              HasSubstr("pool[0].count: is 3, expected at most 2: hosts times per_host"));
  EXPECT_THAT(pool_refusal("launcher = \"ssh\"\n"), HasSubstr("pool[0].hosts: is missing"));
  EXPECT_THAT(pool_refusal("launcher = \"ssh\"\nhosts = [\"n1\", \"n1\"]\n"),
              HasSubstr("names a host twice"));
}

TEST_F(cluster_file, RefusesWordsThatAProgramWouldTakeForAnOption) {
  EXPECT_THAT(pool_refusal("launcher = \"ssh\"\nhosts = [\"-oProxyCommand=x\"]\n"),
              HasSubstr("pool[0].hosts: holds '-oProxyCommand=x'"));
  EXPECT_THAT(pool_refusal("launcher = \"slurm\"\npartition = \"a b\"\n"),
              HasSubstr("pool[0].partition: is 'a b'"));
  EXPECT_THAT(pool_refusal("launcher = \"slurm\"\nextra = [\"echo\"]\n"),
              HasSubstr("expected lines that begin with #SBATCH"));
  EXPECT_THAT(pool_refusal("launcher = \"slurm\"\nsetup = \"\"\"a\nb\"\"\"\n"),
              HasSubstr("pool[0].setup: has several lines"));
}

TEST_F(cluster_file, RefusesNamesThatCannotBeFilesOrPods) {
  EXPECT_THAT(refusal(std::string(top) + "[[pool]]\nname = \"../x\"\nlauncher = \"local\"\n"),
              HasSubstr("pool[0].name: is '../x'"));
  EXPECT_THAT(refusal(std::string(top) + "[[pool]]\nname = \"head\"\nlauncher = \"local\"\n"),
              HasSubstr("which has another meaning"));
  EXPECT_THAT(refusal(std::string(top) +
                      "[[pool]]\nname = \"A\"\nlauncher = \"kubernetes\"\nimage = \"x\"\n"),
              HasSubstr("lower-case letters"));
  EXPECT_THAT(pool_refusal("launcher = \"local\"\n[[pool]]\nname = \"a\"\nlauncher = \"local\"\n"),
              HasSubstr("as of an earlier pool"));
}

TEST_F(cluster_file, WantsAnAddressThatNodesCanConnectTo) {
  EXPECT_THAT(refusal(std::string(top) + "[head]\nlisten = \"0.0.0.0:1\"\n"),
              HasSubstr("head.advertise: is missing"));
  EXPECT_THAT(refusal(std::string(top) + "[head]\nlisten = \"h:0\"\nadvertise = \"h:1\"\n"),
              HasSubstr("head.listen: has port 0"));
}

TEST(ClusterExamples, NameConfigurationsThatAreThere) {
  int count = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(HONE_SOURCE_DIR "/configs/cluster")) {
    const cluster_plan plan = load_cluster(entry.path());
    EXPECT_TRUE(std::filesystem::exists(plan.config)) << entry.path();
    EXPECT_EQ(plan.pools.size(), 1U) << entry.path();
    ++count;
  }
  EXPECT_EQ(count, 4);
}

}  // namespace
}  // namespace hone
