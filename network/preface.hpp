#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace hone {

// The first message on a connection, after the TLS handshake and before CAF takes it over. It is
// text, so that programs of any version of Hone can tell each other why they do not fit:
//
//     hone 1
//     purpose join
//     name gpu-7
//     incarnation 3fb1a2c8e0d94b57
//     version schema 12
//     version judge 18
//     (an empty line)
//
// The head answers "welcome", "refused REASON" or "later REASON", and an empty line.
inline constexpr const char* join_purpose = "join";
inline constexpr const char* status_purpose = "status";  // a look at the run
inline constexpr const char* files_purpose = "files";    // copies of files (network/files/)
inline constexpr const char* pages_purpose = "pages";    // a run's pages (launch/run/page_door.hpp)

struct preface {
  std::string purpose;
  std::string name;               // of the node: up to 64 letters, digits, ' ', '.', '-', '_'
  std::uint64_t incarnation = 0;  // drawn each time that the node starts
  std::map<std::string, std::uint32_t> versions;
};

// Longest preface or answer in bytes, with the empty line.
inline constexpr std::size_t max_preface = 1024;

std::string to_text(const preface& p);
// Returns nullopt for anything else than a whole preface of this version.
std::optional<preface> parse_preface(std::string_view text);
// False as soon as the first bytes of a connection cannot begin a preface.
bool may_begin_preface(std::string_view text);
// True if the text ends with an empty line.
bool is_whole(std::string_view text);

struct preface_answer {
  enum class kind {
    welcome,
    refused,  // and it will be again
    later,    // for now
  };
  kind what = kind::welcome;
  std::string reason{};  // a part of a sentence; empty with a welcome
};
std::string to_text(const preface_answer& answer);
// Returns nullopt for anything else than a whole answer.
std::optional<preface_answer> parse_answer(std::string_view text);

// True of what a node may be called.
bool is_node_name(std::string_view name);

// Returns why versions do not fit those of this program: "judge version 17, expected 18"; empty if
// all do.
std::string find_version_problem(const std::map<std::string, std::uint32_t>& found,
                                 const std::map<std::string, std::uint32_t>& expected);

}  // namespace hone
