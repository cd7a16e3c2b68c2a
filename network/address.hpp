#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>

#include "process/unique_fd.hpp"

namespace hone {

struct network_address {
  std::string host;  // a name, or an IP address in digits
  std::uint16_t port = 0;
};

// Splits "gpu-7:4242" or "[::1]:4242". Throws network_error with the reason. Port 0 is refused
// unless it is allowed: a listener then takes a free one.
network_address parse_address(const std::string& text, bool allows_any_port = false);

// Returns "gpu-7:4242" or "[::1]:4242".
std::string to_string(const network_address& address);

// True if the host is surely this machine: "localhost", or a loopback address in digits. Any other
// name may resolve to anything.
bool is_loopback(const network_address& address);

// Returns a socket that listens; sets the port if it was 0. Throws network_error.
unique_fd listen_on(network_address& address);

// Returns a Unix socket that listens, and that only this user can connect to. A file that nobody
// listens on is replaced. Throws network_error.
unique_fd listen_on(const std::filesystem::path& socket);

// Returns a non-blocking socket that is connected to one of the host's addresses. Blocks up to the
// deadline, and for the resolver. Throws connection_failed, or nobody_listens.
unique_fd connect_socket(const network_address& address,
                         std::chrono::steady_clock::time_point deadline);

// Returns the address of the other end of a socket in digits.
std::string peer_of(int fd);

}  // namespace hone
