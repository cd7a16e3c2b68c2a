// Stands in for network/identity.cpp: identities are folders with three files and no cryptography.

#include "network/identity.hpp"

#include "tests/support/temporary_folder.hpp"

namespace hone {

using testing_support::write_file;

void make_authority(const std::filesystem::path& authority, std::chrono::days) {
  write_file(authority / "ca.pem", "authority\n");
  write_file(authority / "ca.key", "key of the authority\n");
}

std::filesystem::path make_identity(const std::filesystem::path& authority, const std::string& name,
                                    identity_role role, std::chrono::days) {
  std::filesystem::path folder = authority / "identities" / name;
  write_file(folder / "ca.pem", "authority\n");
  write_file(folder / "certificate.pem", role == identity_role::head ? "head\n" : "node\n");
  write_file(folder / "key.pem", "key of " + name + "\n");
  return folder;
}

}  // namespace hone
