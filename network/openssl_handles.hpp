#pragma once

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>

namespace hone {

// Only for the .cpp files of this room, as it includes OpenSSL.

template <auto Free>
struct openssl_deleter {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};
using key_handle = std::unique_ptr<EVP_PKEY, openssl_deleter<EVP_PKEY_free>>;
using certificate_handle = std::unique_ptr<X509, openssl_deleter<X509_free>>;
using revocations_handle = std::unique_ptr<X509_CRL, openssl_deleter<X509_CRL_free>>;
using bio_handle = std::unique_ptr<BIO, openssl_deleter<BIO_free_all>>;
using context_handle = std::unique_ptr<SSL_CTX, openssl_deleter<SSL_CTX_free>>;

std::string to_hexadecimal(const BIGNUM* number);

// Returns the serial number of a certificate in hexadecimal.
std::string serial_of(const X509* certificate);

// Returns the common name of a certificate's subject.
std::string name_of(const X509* certificate);

// Returns the reason of OpenSSL's last failure on this thread, and forgets all failures.
std::string take_openssl_problem();

}  // namespace hone
