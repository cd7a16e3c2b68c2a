#pragma once

#include <chrono>
#include <filesystem>
#include <memory>

#include "network/address.hpp"
#include "network/channel.hpp"
#include "network/identity.hpp"
#include "network/preface.hpp"

namespace hone {

// Thrown if nothing listens at an address: the head may be starting.
class nobody_listens : public network_error {
 public:
  using network_error::network_error;
};

// Thrown if a head has said why it does not let the node in.
class refused_by_head : public network_error {
 public:
  using network_error::network_error;
};

// Connects to a head, says the preface, and returns the connection once the head has let it in.
// `identity` is the folder of a node's identity; empty: without TLS. Blocks for `limit` at most.
// Throws network_error with the reason, which is the head's if it has refused.
std::shared_ptr<channel> connect_to(const network_address& head, const preface& says,
                                    const std::filesystem::path& identity,
                                    std::chrono::milliseconds limit);

}  // namespace hone
