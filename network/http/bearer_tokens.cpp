#include "network/http/bearer_tokens.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <array>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "network/identity.hpp"
#include "process/replace_file.hpp"

namespace hone {
namespace {

constexpr auto check_every = std::chrono::seconds(1);
constexpr std::size_t hash_bytes = 32;

std::string hexadecimal(const unsigned char* bytes, std::size_t size) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < size; ++i) {
    text += digits[bytes[i] >> 4U];
    text += digits[bytes[i] & 15U];
  }
  return text;
}

std::string hash_of(const std::string& token) {
  std::array<unsigned char, hash_bytes> hash{};
  unsigned size = 0;
  if (EVP_Digest(token.data(), token.size(), hash.data(), &size, EVP_sha256(), nullptr) != 1)
    throw network_error("OpenSSL cannot compute a SHA-256");
  return hexadecimal(hash.data(), size);
}

bool is_client_name(const std::string& name) {
  return !name.empty() && name.size() <= 64 &&
         name.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
             "@") == std::string::npos;
}

std::map<std::string, std::string> read_hashes(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in) throw network_error(file.string() + ": cannot be read");
  std::map<std::string, std::string> hashes;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    std::istringstream words(line);
    std::string name;
    std::string hash;
    std::string more;
    if (!(words >> name) || name.starts_with('#')) continue;
    words >> hash;
    const bool is_hash = hash.size() == 2 * hash_bytes &&
                         hash.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (!is_client_name(name) || !is_hash || words >> more)
      throw network_error(file.string() + ":" + std::to_string(number) +
                          ": expected a client's name and the SHA-256 of its token, in 64 "
                          "hexadecimal digits (hone serve --add-client writes such a line)");
    if (!hashes.emplace(name, hash).second)
      throw network_error(file.string() + ":" + std::to_string(number) + ": a second line of " +
                          name);
  }
  return hashes;
}

}  // namespace

bearer_tokens::bearer_tokens(std::filesystem::path file) : file_(std::move(file)) { read(); }

void bearer_tokens::read() {
  std::error_code ignored;
  const auto changed_at = std::filesystem::last_write_time(file_, ignored);
  hashes_ = read_hashes(file_);
  read_at_ = changed_at;
}

std::optional<std::string> bearer_tokens::find_client(const std::string& token) {
  const std::string hash = hash_of(token);
  const std::lock_guard hold(lock_);
  const auto now = std::chrono::steady_clock::now();
  if (now - checked_at_ > check_every) {
    checked_at_ = now;
    std::error_code failed;
    const auto changed_at = std::filesystem::last_write_time(file_, failed);
    try {
      if (!failed && changed_at != read_at_) read();
    } catch (const network_error&) {  // somebody is editing it
    }
  }
  std::optional<std::string> found;
  for (const auto& [client, known] : hashes_) {
    if (is_same_secret(known, hash)) found = client;
  }
  return found;
}

std::string make_token() {
  std::array<unsigned char, hash_bytes> random{};
  if (RAND_bytes(random.data(), static_cast<int>(random.size())) != 1)
    throw network_error("OpenSSL has no random numbers");
  return "hone-" + hexadecimal(random.data(), random.size());
}

bool is_same_secret(const std::string& a, const std::string& b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string add_client(const std::filesystem::path& file, const std::string& client) {
  if (!is_client_name(client))
    throw network_error("'" + client +
                        "' is no name for a client: up to 64 letters, digits, '.', '-', '_' and "
                        "'@'");
  std::string text;
  if (std::filesystem::exists(file)) {
    if (read_hashes(file).contains(client))
      throw network_error(file.string() + ": has a client " + client +
                          " already; delete its line to give it another token");
    std::ifstream in(file);
    text.assign(std::istreambuf_iterator<char>(in), {});
    if (!text.empty() && !text.ends_with('\n')) text += '\n';
  }
  const std::string token = make_token();
  replace_file(file, text + client + " " + hash_of(token) + "\n", 0600);
  return token;
}

}  // namespace hone
