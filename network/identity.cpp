#include "network/identity.hpp"

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iomanip>
#include <sstream>
#include <system_error>

#include "network/openssl_handles.hpp"
#include "process/cut_line.hpp"
#include "process/file_lock.hpp"
#include "process/replace_file.hpp"
#include "process/unique_fd.hpp"
#include "process/write_failure.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;
using days = std::chrono::days;

// Seconds that the clocks of nodes may differ.
constexpr long clock_difference = 3600;

[[noreturn]] void fail(const std::string& what) {
  throw network_error(what + ": " + take_openssl_problem());
}

template <class T>
T* check(T* made, const char* what) {
  if (made == nullptr) fail(what);
  return made;
}

// ---- files

// Throws network_error.
void write_file(const fs::path& path, const std::string& text, mode_t mode) {
  try {
    replace_file(path, text, mode);
  } catch (const std::runtime_error& e) {
    throw network_error(e.what());
  }
}

void make_folder(const fs::path& folder) {
  std::error_code problem;
  fs::create_directories(folder, problem);
  if (!problem) fs::permissions(folder, fs::perms::owner_all, problem);
  if (problem) throw network_error(folder.string() + ": cannot be made: " + problem.message());
}

template <class Write>
std::string to_pem(const Write& write) {
  const bio_handle memory(check(BIO_new(BIO_s_mem()), "memory"));
  if (write(memory.get()) != 1) fail("writing PEM");
  char* text = nullptr;
  const long size = BIO_get_mem_data(memory.get(), &text);
  return {text, static_cast<std::size_t>(size)};
}
std::string to_pem(EVP_PKEY* key) {
  return to_pem([&](BIO* to) {
    return PEM_write_bio_PrivateKey(to, key, nullptr, nullptr, 0, nullptr, nullptr);
  });
}
std::string to_pem(X509* certificate) {
  return to_pem([&](BIO* to) { return PEM_write_bio_X509(to, certificate); });
}
std::string to_pem(X509_CRL* revocations) {
  return to_pem([&](BIO* to) { return PEM_write_bio_X509_CRL(to, revocations); });
}

bio_handle open_pem(const fs::path& path) {
  bio_handle file(BIO_new_file(path.c_str(), "rb"));
  if (file == nullptr) fail(path.string() + ": cannot be read");
  return file;
}

// ---- certificates

void draw(unsigned char* bytes, std::size_t size) {
  if (RAND_bytes(bytes, static_cast<int>(size)) != 1) fail("drawing random numbers");
}

key_handle make_key() { return key_handle(check(EVP_EC_gen("P-256"), "making a key")); }

// Returns a certificate of a key from now on, without extensions and not signed.
certificate_handle draft(EVP_PKEY* key, const std::string& name, days validity) {
  certificate_handle made(check(X509_new(), "making a certificate"));
  std::array<unsigned char, 16> serial{};
  draw(serial.data(), serial.size());
  serial[0] = static_cast<unsigned char>((serial[0] & 0x7f) | 0x40);  // positive, of full length
  const std::unique_ptr<BIGNUM, openssl_deleter<BN_free>> number(
      check(BN_bin2bn(serial.data(), serial.size(), nullptr), "making a serial number"));
  X509_set_version(made.get(), X509_VERSION_3);
  BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(made.get()));
  X509_gmtime_adj(X509_getm_notBefore(made.get()), -clock_difference);
  X509_time_adj_ex(X509_getm_notAfter(made.get()), static_cast<int>(validity.count()), 0, nullptr);
  X509_set_pubkey(made.get(), key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(made.get()), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(name.data()),
                             static_cast<int>(name.size()), -1, 0);
  return made;
}

void extend(X509* certificate, X509* issuer, int kind, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, openssl_deleter<X509_EXTENSION_free>> made(
      check(X509V3_EXT_conf_nid(nullptr, &context, kind, value), value));
  if (X509_add_ext(certificate, made.get(), -1) != 1) fail(value);
}

struct authority_files {
  key_handle key;
  certificate_handle certificate;
};

authority_files open_authority(const fs::path& folder) {
  authority_files all;
  all.certificate.reset(
      PEM_read_bio_X509(open_pem(folder / "ca.pem").get(), nullptr, nullptr, nullptr));
  all.key.reset(
      PEM_read_bio_PrivateKey(open_pem(folder / "ca.key").get(), nullptr, nullptr, nullptr));
  if (all.key == nullptr || all.certificate == nullptr)
    fail(folder.string() + ": is not the folder of an authority");
  return all;
}

// Keeps others from changing an authority as long as it lives.
unique_fd lock(const fs::path& authority) {
  try {
    return lock_file(authority / "lock");
  } catch (const std::runtime_error& e) {
    throw network_error(e.what());
  }
}

// ---- what was issued: a line each, "SERIAL ROLE EXPIRES NAME", or "SERIAL revoked"

std::string date_of(const ASN1_TIME* time) {
  std::tm broken{};
  ASN1_TIME_to_tm(time, &broken);
  std::array<char, 16> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), "%F", &broken);
  return {text.data(), size};
}

void append_line(const fs::path& authority, const std::string& line) {
  remove_cut_line(authority / "issued");
  std::ofstream out(authority / "issued", std::ios::app);
  out << line << "\n";
  out.flush();
  if (!out) throw network_error(write_failure(authority / "issued"));
}

// Signs the list of revoked certificates anew, in the authority and in each head's identity.
void write_revocations(const fs::path& authority, const authority_files& by) {
  const revocations_handle made(check(X509_CRL_new(), "making a list of revocations"));
  X509_CRL_set_version(made.get(), X509_CRL_VERSION_2);
  X509_CRL_set_issuer_name(made.get(), X509_get_subject_name(by.certificate.get()));
  const std::unique_ptr<ASN1_TIME, openssl_deleter<ASN1_TIME_free>> now(
      X509_gmtime_adj(nullptr, -clock_difference));
  X509_CRL_set1_lastUpdate(made.get(), now.get());
  X509_CRL_set1_nextUpdate(made.get(), X509_get0_notAfter(by.certificate.get()));
  const std::vector<issued_identity> all = list_identities(authority);
  for (const issued_identity& one : all) {
    if (!one.is_revoked) continue;
    BIGNUM* number = nullptr;
    BN_hex2bn(&number, one.serial.c_str());
    const std::unique_ptr<BIGNUM, openssl_deleter<BN_free>> owned(number);
    X509_REVOKED* const revoked = check(X509_REVOKED_new(), "revoking");
    const std::unique_ptr<ASN1_INTEGER, openssl_deleter<ASN1_INTEGER_free>> serial(
        BN_to_ASN1_INTEGER(number, nullptr));
    X509_REVOKED_set_serialNumber(revoked, serial.get());
    X509_REVOKED_set_revocationDate(revoked, now.get());
    X509_CRL_add0_revoked(made.get(), revoked);
  }
  X509_CRL_sort(made.get());
  if (X509_CRL_sign(made.get(), by.key.get(), EVP_sha256()) == 0) fail("signing revocations");
  const std::string pem = to_pem(made.get());
  write_file(authority / "crl.pem", pem, 0644);
  for (const issued_identity& one : all) {
    const fs::path folder = authority / "identities" / one.name;
    if (one.role == identity_role::head && fs::exists(folder))
      write_file(folder / "crl.pem", pem, 0644);
  }
}

bool is_name(const std::string& name) {
  return !name.empty() && name.size() <= 64 && name.front() != '.' &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
         });
}

}  // namespace

std::string to_hexadecimal(const BIGNUM* number) {
  const std::unique_ptr<char, decltype([](char* text) { OPENSSL_free(text); })> text(
      BN_bn2hex(number));
  return text != nullptr ? text.get() : "";
}

std::string serial_of(const X509* certificate) {
  const std::unique_ptr<BIGNUM, openssl_deleter<BN_free>> number(
      ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate), nullptr));
  return to_hexadecimal(number.get());
}

std::string name_of(const X509* certificate) {
  std::array<char, 128> text{};
  const int size = X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName,
                                             text.data(), text.size());
  return {text.data(), static_cast<std::size_t>(std::max(size, 0))};
}

std::string take_openssl_problem() {
  const unsigned long code = ERR_get_error();
  const char* const reason = ERR_reason_error_string(code);
  ERR_clear_error();
  return reason != nullptr ? reason : "no reason is known";
}

void make_authority(const fs::path& authority, days validity) {
  if (fs::exists(authority / "ca.key"))
    throw network_error(authority.string() + ": is an authority already");
  make_folder(authority);
  make_folder(authority / "identities");
  authority_files made{make_key(), nullptr};
  std::array<unsigned char, 4> drawn{};  // authorities have different names
  draw(drawn.data(), drawn.size());
  std::ostringstream name;
  name << "Hone authority " << std::hex;
  for (const unsigned byte : drawn) name << std::setw(2) << std::setfill('0') << byte;
  made.certificate = draft(made.key.get(), name.str(), validity);
  X509* const ca = made.certificate.get();
  X509_set_issuer_name(ca, X509_get_subject_name(ca));
  extend(ca, ca, NID_basic_constraints, "critical,CA:TRUE,pathlen:0");
  extend(ca, ca, NID_key_usage, "critical,keyCertSign,cRLSign");
  extend(ca, ca, NID_subject_key_identifier, "hash");
  if (X509_sign(ca, made.key.get(), EVP_sha256()) == 0) fail("signing the authority");
  write_file(authority / "ca.pem", to_pem(ca), 0644);
  write_file(authority / "issued", "", 0644);
  write_revocations(authority, made);
  write_file(authority / "ca.key", to_pem(made.key.get()), 0600);  // last: now it is one
}

fs::path make_identity(const fs::path& authority, const std::string& name, identity_role role,
                       days validity) {
  if (!is_name(name))
    throw network_error("'" + name +
                        "' is not a name for an identity: up to 64 letters, digits, '-', '_', '.'");
  const authority_files by = open_authority(authority);
  const unique_fd locked = lock(authority);
  for (const issued_identity& one : list_identities(authority)) {
    if (one.name == name && !one.is_revoked)
      throw network_error(authority.string() + ": has an identity " + name + " already");
  }
  const key_handle key = make_key();
  const certificate_handle made = draft(key.get(), name, validity);
  X509_set_issuer_name(made.get(), X509_get_subject_name(by.certificate.get()));
  const bool is_head = role == identity_role::head;
  const auto add = [&](int kind, const char* value) {
    extend(made.get(), by.certificate.get(), kind, value);
  };
  add(NID_basic_constraints, "critical,CA:FALSE");
  add(NID_key_usage, "critical,digitalSignature");
  add(NID_ext_key_usage, is_head ? "serverAuth,clientAuth" : "clientAuth");
  if (is_head) add(NID_subject_alt_name, (std::string("DNS:") + head_name).c_str());
  if (X509_sign(made.get(), by.key.get(), EVP_sha256()) == 0) fail("signing " + name);
  // Before anyone can have the certificate: only listed certificates can be revoked.
  append_line(authority, serial_of(made.get()) + (is_head ? " head " : " node ") +
                             date_of(X509_get0_notAfter(made.get())) + " " + name);
  const fs::path folder = authority / "identities" / name;
  make_folder(folder);
  write_file(folder / "key.pem", to_pem(key.get()), 0600);
  write_file(folder / "certificate.pem", to_pem(made.get()), 0644);
  write_file(folder / "ca.pem", to_pem(by.certificate.get()), 0644);  // last: now it is whole
  write_revocations(authority, by);
  return folder;
}

std::vector<issued_identity> list_identities(const fs::path& authority) {
  std::ifstream in(authority / "issued");
  if (!in) throw network_error(authority.string() + ": is not the folder of an authority");
  std::vector<issued_identity> all;
  // A last line without its newline was cut: what it says was not done.
  for (std::string line; std::getline(in, line) && !in.eof();) {
    std::istringstream words(line);
    issued_identity one;
    std::string role;
    words >> one.serial >> role >> one.expires >> one.name;
    if (role == "revoked") {
      for (issued_identity& earlier : all) earlier.is_revoked |= earlier.serial == one.serial;
    } else {
      one.role = role == "head" ? identity_role::head : identity_role::node;
      all.push_back(one);
    }
  }
  return all;
}

void revoke_identity(const fs::path& authority, const std::string& name) {
  const authority_files by = open_authority(authority);
  const unique_fd locked = lock(authority);
  const std::vector<issued_identity> all = list_identities(authority);
  const auto found = std::find_if(all.begin(), all.end(), [&](const issued_identity& one) {
    return one.name == name && !one.is_revoked;
  });
  if (found == all.end())
    throw network_error(authority.string() + ": has no identity " + name + " to revoke");
  append_line(authority, found->serial + " revoked");
  write_revocations(authority, by);
}

}  // namespace hone
