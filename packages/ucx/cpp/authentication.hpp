// Whether two processes know the same secret: HMAC-SHA256 (FIPS 180-4, FIPS 198-1).
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace plait::ucx {

using Digest = std::array<uint8_t, 32>;

Digest sha256(const std::string &message);
Digest hmac_sha256(const std::string &key, const std::string &message);
std::string text_of(const Digest &);  // its bytes
Digest random_digest();               // of the system's generator
// takes as long for any two digests
bool equal(const Digest &, const uint8_t *other);

}  // namespace plait::ucx
