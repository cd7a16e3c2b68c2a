#include "network/identity.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "tests/support/temporary_folder.hpp"

namespace hone {
namespace {

using testing::ElementsAre;
using testing::Field;
using testing_support::temporary_folder;

mode_t mode_of(const std::filesystem::path& file) {
  struct stat facts {};
  EXPECT_EQ(stat(file.c_str(), &facts), 0) << file;
  return facts.st_mode & 0777;
}

class Identities : public testing::Test {
 protected:
  Identities() { make_authority(authority_); }

  temporary_folder folder_;
  std::filesystem::path authority_ = folder_ / "authority";
};

TEST_F(Identities, AreListedWithTheirRoles) {
  make_identity(authority_, "head", identity_role::head);
  make_identity(authority_, "gpus", identity_role::node);
  EXPECT_THAT(list_identities(authority_),
              ElementsAre(testing::AllOf(Field(&issued_identity::name, "head"),
                                         Field(&issued_identity::role, identity_role::head)),
                          testing::AllOf(Field(&issued_identity::name, "gpus"),
                                         Field(&issued_identity::role, identity_role::node),
                                         Field(&issued_identity::is_revoked, false))));
}

TEST_F(Identities, KeepTheirKeysSecret) {
  const auto folder = make_identity(authority_, "gpus", identity_role::node);
  EXPECT_EQ(mode_of(folder / "key.pem"), 0600U);
  EXPECT_EQ(mode_of(authority_ / "ca.key"), 0600U);
  EXPECT_EQ(mode_of(folder), 0700U);
}

TEST_F(Identities, AreMadeOnceUntilTheyAreRevoked) {
  make_identity(authority_, "gpus", identity_role::node);
  EXPECT_THROW(make_identity(authority_, "gpus", identity_role::node), network_error);
  revoke_identity(authority_, "gpus");
  EXPECT_THROW(revoke_identity(authority_, "gpus"), network_error);
  make_identity(authority_, "gpus", identity_role::node);
  EXPECT_THAT(list_identities(authority_), ElementsAre(Field(&issued_identity::is_revoked, true),
                                                       Field(&issued_identity::is_revoked, false)));
}

TEST_F(Identities, HaveNamesThatAreFolders) {
  for (const char* name : {"", "..", "a/b", "a b", ".hidden", "a\nb"})
    EXPECT_THROW(make_identity(authority_, name, identity_role::node), network_error) << name;
}

TEST_F(Identities, NeedAnAuthority) {
  EXPECT_THROW(make_identity(folder_ / "nothing", "a", identity_role::node), network_error);
  EXPECT_THROW(list_identities(folder_ / "nothing"), network_error);
  EXPECT_THROW(make_authority(authority_), network_error);
}

}  // namespace
}  // namespace hone
