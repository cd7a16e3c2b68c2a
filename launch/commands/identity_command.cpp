#include <iostream>

#include "launch/commands/commands.hpp"
#include "network/identity.hpp"
#include "results/printing.hpp"

namespace hone {
namespace {

struct identity_arguments {
  std::string authority;
  std::string name;
  bool is_head = false;
  std::int64_t days = 365;
};

int make(const identity_arguments& a) {
  const auto folder =
      make_identity(a.authority, a.name, a.is_head ? identity_role::head : identity_role::node,
                    std::chrono::days(a.days));
  std::cout << folder.string() << "\n";
  return 0;
}

int list(const identity_arguments& a) {
  for (const issued_identity& one : list_identities(a.authority))
    std::cout << pad(one.name, 24) << " " << (one.role == identity_role::head ? "head" : "node")
              << "  " << (one.is_revoked ? "revoked         " : "until " + one.expires) << "  "
              << one.serial << "\n";
  return 0;
}

}  // namespace

void add_identity_command(CLI::App& app, command_action& action) {
  auto given = std::make_shared<identity_arguments>();
  CLI::App* group = app.add_subcommand(
      "identity", "Make and revoke the certificates by which nodes of other machines join a run");
  group->require_subcommand(1);
  const auto add = [&](const char* name, const char* meaning, bool has_name,
                       std::function<int(const identity_arguments&)> act) {
    CLI::App* command = group->add_subcommand(name, meaning);
    command->add_option("authority", given->authority, "folder of the authority")->required();
    if (has_name) command->add_option("name", given->name, "name of the identity")->required();
    command->callback([given, act, &action] { action = [given, act] { return act(*given); }; });
    return command;
  };
  add("init", "Make an authority: a new certificate authority", false,
      [](const identity_arguments& a) {
        make_authority(a.authority);
        return 0;
      });
  CLI::App* made = add("make", "Issue an identity and print its folder", true, make);
  made->add_flag("--head", given->is_head, "for a run's first node, to which the others connect");
  made->add_option("--days", given->days, "how long it is valid")
      ->capture_default_str()
      ->check(CLI::Range(1, 36500));
  add("list", "List the identities that an authority has issued", false, list);
  add("revoke", "Revoke an identity: heads end its connections within a second", true,
      [](const identity_arguments& a) {
        revoke_identity(a.authority, a.name);
        return 0;
      });
}

}  // namespace hone
