#include "authentication.hpp"

#include <sys/random.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace plait::ucx {
namespace {

constexpr size_t block = 64;  // bytes

constexpr uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t rotated(uint32_t x, int by) { return x >> by | x << (32 - by); }

void add_block(uint32_t (&state)[8], const uint8_t *at) {
  uint32_t w[64];
  for (int i = 0; i < 16; i++)
    w[i] = uint32_t(at[4 * i]) << 24 | uint32_t(at[4 * i + 1]) << 16 |
           uint32_t(at[4 * i + 2]) << 8 | at[4 * i + 3];
  for (int i = 16; i < 64; i++) {
    const uint32_t a = w[i - 15], b = w[i - 2];
    w[i] = w[i - 16] + (rotated(a, 7) ^ rotated(a, 18) ^ a >> 3) + w[i - 7] +
           (rotated(b, 17) ^ rotated(b, 19) ^ b >> 10);
  }
  uint32_t v[8];
  std::memcpy(v, state, sizeof v);
  for (int i = 0; i < 64; i++) {
    const uint32_t e = v[4], a = v[0];
    const uint32_t one = v[7] + (rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)) +
                         ((e & v[5]) ^ (~e & v[6])) + constants[i] + w[i];
    const uint32_t two = (rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)) +
                         ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
    std::memmove(v + 1, v, 7 * sizeof *v);
    v[4] += one;
    v[0] = one + two;
  }
  for (int i = 0; i < 8; i++) state[i] += v[i];
}

}  // namespace

Digest sha256(const std::string &message) {
  uint32_t state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                       0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::string padded = message + '\x80';
  while (padded.size() % block != block - 8) padded += '\0';
  const uint64_t bits = uint64_t(message.size()) * 8;
  for (int i = 7; i >= 0; i--) padded += char(bits >> (8 * i));
  for (size_t at = 0; at < padded.size(); at += block)
    add_block(state, reinterpret_cast<const uint8_t *>(padded.data()) + at);
  Digest found;
  for (size_t i = 0; i < found.size(); i++) found[i] = uint8_t(state[i / 4] >> (24 - 8 * (i % 4)));
  return found;
}

Digest hmac_sha256(const std::string &key, const std::string &message) {
  std::string k = key.size() > block ? text_of(sha256(key)) : key;
  k.resize(block, '\0');
  std::string inner = k, outer = k;
  for (char &c : inner) c = char(c ^ 0x36);
  for (char &c : outer) c = char(c ^ 0x5c);
  return sha256(outer + text_of(sha256(inner + message)));
}

std::string text_of(const Digest &d) {
  return {reinterpret_cast<const char *>(d.data()), d.size()};
}

Digest random_digest() {
  Digest found;
  size_t at = 0;
  while (at < found.size()) {
    const ssize_t n = getrandom(found.data() + at, found.size() - at, 0);
    if (n < 0 && errno != EINTR) throw std::runtime_error("the system gives no random numbers");
    if (n > 0) at += size_t(n);
  }
  return found;
}

bool equal(const Digest &d, const uint8_t *other) {
  uint8_t different = 0;
  for (size_t i = 0; i < d.size(); i++) different = uint8_t(different | (d[i] ^ other[i]));
  return different == 0;
}

}  // namespace plait::ucx
