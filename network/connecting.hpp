#pragma once

#include <chrono>
#include <filesystem>
#include <memory>

#include "network/address.hpp"
#include "network/channel.hpp"
#include "network/identity.hpp"
#include "network/preface.hpp"
#include "network/tls.hpp"

namespace hone {

// Connects to a head or a node, says the preface, and returns the connection once the other end has
// let it in. `identity` is the folder of a node's identity; empty: without TLS. Blocks for `limit`
// at most, and for the resolver of names. Throws connection_failed, refused_by_head or, for a
// broken identity, network_error.
std::shared_ptr<channel> connect_to(const network_address& to, const preface& says,
                                    const std::filesystem::path& identity,
                                    std::chrono::milliseconds limit,
                                    tls_role role = tls_role::connects_to_head);

}  // namespace hone
