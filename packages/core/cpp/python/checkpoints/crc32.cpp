// A CRC is the remainder of a polynomial over GF(2). Bytes far ahead are multiplied by a power of
// x, sixteen bytes at a time by carry-less multiplication, and added to later ones. Gopal et al.,
// "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ", Intel 2009.
#include "checkpoints/crc32.hpp"

#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <arm_acle.h>
#include <sys/auxv.h>
#endif

namespace plait::core {
namespace {

constexpr uint32_t kPolynomial = 0xEDB88320;  // the bit of x^31 is the lowest one

constexpr uint32_t times_x(uint32_t a) { return (a >> 1) ^ (a & 1 ? kPolynomial : 0); }

constexpr uint32_t product(uint32_t a, uint32_t b) {
  uint32_t sum = 0;
  for (uint32_t bit = 0x80000000; bit; bit >>= 1, b = times_x(b))
    if (a & bit) sum ^= b;
  return sum;
}

constexpr uint32_t power_of_x(uint64_t n) {
  uint32_t result = 0x80000000, square = 0x40000000;
  for (; n; n >>= 1, square = product(square, square))
    if (n & 1) result = product(result, square);
  return result;
}

struct Table {
  uint32_t at[8][256] = {};
  constexpr Table() {
    for (uint32_t i = 0; i < 256; i++) {
      uint32_t a = i;
      for (int bit = 0; bit < 8; bit++) a = times_x(a);
      at[0][i] = a;
    }
    for (int k = 1; k < 8; k++)
      for (uint32_t i = 0; i < 256; i++) at[k][i] = (at[k - 1][i] >> 8) ^ at[0][at[k - 1][i] & 255];
  }
};
constexpr Table kTable;

uint32_t byte_by_byte(uint32_t crc, const char *p, uint64_t nbytes) {
  for (; nbytes; nbytes--) crc = (crc >> 8) ^ kTable.at[0][(crc ^ uint8_t(*p++)) & 255];
  return crc;
}

uint32_t eight_bytes(uint32_t crc, const char *p) {
  uint8_t b[8];
  memcpy(b, p, 8);
  for (int i = 0; i < 4; i++) b[i] ^= uint8_t(crc >> 8 * i);
  uint32_t next = 0;
  for (int i = 0; i < 8; i++) next ^= kTable.at[7 - i][b[i]];
  return next;
}

// Three stretches are computed side by side, because each step waits for the one before.
template <class Step>
__attribute__((always_inline)) inline uint32_t in_three_chains(uint32_t crc, const char *p,
                                                               uint64_t nbytes, Step step) {
  constexpr uint64_t kChain = 4096;
  constexpr uint32_t kFar = power_of_x(8 * 2 * kChain), kNear = power_of_x(8 * kChain);
  for (; nbytes >= 3 * kChain; p += 3 * kChain, nbytes -= 3 * kChain) {
    uint32_t second = 0, third = 0;
    for (uint64_t i = 0; i < kChain; i += 8) {
      crc = step(crc, p + i);
      second = step(second, p + kChain + i);
      third = step(third, p + 2 * kChain + i);
    }
    crc = product(crc, kFar) ^ product(second, kNear) ^ third;
  }
  for (; nbytes >= 8; p += 8, nbytes -= 8) crc = step(crc, p);
  return byte_by_byte(crc, p, nbytes);
}

uint32_t by_tables(uint32_t crc, const char *p, uint64_t nbytes) {
  return in_three_chains(crc, p, nbytes, eight_bytes);
}

#if defined(__x86_64__)

// The factors of the first and the last eight of sixteen bytes that are moved ahead by `bits`.
constexpr int64_t first_of(uint64_t bits) { return int64_t(uint64_t(power_of_x(bits + 32)) << 1); }
constexpr int64_t last_of(uint64_t bits) { return int64_t(uint64_t(power_of_x(bits - 32)) << 1); }

constexpr uint64_t kAtOnce = 8;  // vectors, so that products do not wait for one another

__attribute__((target("pclmul"))) inline __m128i moved(__m128i a, __m128i by) {
  return _mm_xor_si128(_mm_clmulepi64_si128(a, by, 0x00), _mm_clmulepi64_si128(a, by, 0x11));
}

// The remainder of `count` vectors one after another, then of what is left.
__attribute__((target("pclmul"))) uint32_t folded(const __m128i *lanes, uint64_t count,
                                                  const char *p, uint64_t nbytes) {
  const __m128i by = _mm_set_epi64x(last_of(128), first_of(128));
  __m128i sum = lanes[0];
  for (uint64_t i = 1; i < count; i++) sum = _mm_xor_si128(moved(sum, by), lanes[i]);
  for (; nbytes >= 16; p += 16, nbytes -= 16)
    sum = _mm_xor_si128(moved(sum, by), _mm_loadu_si128(reinterpret_cast<const __m128i *>(p)));
  char bytes[16];
  memcpy(bytes, &sum, 16);
  return byte_by_byte(eight_bytes(eight_bytes(0, bytes), bytes + 8), p, nbytes);
}

__attribute__((target("pclmul"))) uint32_t by_pclmul(uint32_t crc, const char *p, uint64_t nbytes) {
  constexpr uint64_t kStep = 16 * kAtOnce;
  if (nbytes < kStep) return by_tables(crc, p, nbytes);
  const __m128i by = _mm_set_epi64x(last_of(8 * kStep), first_of(8 * kStep));
  __m128i lanes[kAtOnce];
  memcpy(lanes, p, kStep);
  lanes[0] = _mm_xor_si128(lanes[0], _mm_cvtsi32_si128(int(crc)));
  for (p += kStep, nbytes -= kStep; nbytes >= kStep; p += kStep, nbytes -= kStep) {
#pragma GCC unroll 8
    for (uint64_t i = 0; i < kAtOnce; i++)
      lanes[i] = _mm_xor_si128(moved(lanes[i], by),
                               _mm_loadu_si128(reinterpret_cast<const __m128i *>(p + 16 * i)));
  }
  return folded(lanes, kAtOnce, p, nbytes);
}

__attribute__((target("avx2,pclmul,vpclmulqdq"))) uint32_t by_vpclmul(uint32_t crc, const char *p,
                                                                      uint64_t nbytes) {
  constexpr uint64_t kStep = 32 * kAtOnce;
  if (nbytes < kStep) return by_pclmul(crc, p, nbytes);
  const __m256i by = _mm256_set_epi64x(last_of(8 * kStep), first_of(8 * kStep), last_of(8 * kStep),
                                       first_of(8 * kStep));
  __m256i lanes[kAtOnce];
  memcpy(lanes, p, kStep);
  lanes[0] = _mm256_xor_si256(lanes[0], _mm256_set_epi64x(0, 0, 0, int64_t(crc)));
  for (p += kStep, nbytes -= kStep; nbytes >= kStep; p += kStep, nbytes -= kStep) {
#pragma GCC unroll 8
    for (uint64_t i = 0; i < kAtOnce; i++)
      lanes[i] =
          _mm256_xor_si256(_mm256_xor_si256(_mm256_clmulepi64_epi128(lanes[i], by, 0x00),
                                            _mm256_clmulepi64_epi128(lanes[i], by, 0x11)),
                           _mm256_loadu_si256(reinterpret_cast<const __m256i *>(p + 32 * i)));
  }
  __m128i halves[2 * kAtOnce];
  memcpy(halves, lanes, kStep);
  return folded(halves, 2 * kAtOnce, p, nbytes);
}

Crc32::Way way_of(int number) {
  __builtin_cpu_init();
  const bool has = __builtin_cpu_supports("pclmul");
  if (number == 0) return by_tables;
  if (number == 1) return has ? by_pclmul : nullptr;
  return has && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("vpclmulqdq") ? by_vpclmul
                                                                                       : nullptr;
}

#elif defined(__aarch64__) && defined(__linux__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__

#if defined(__clang__)
#define PLAIT_HAS_CRC __attribute__((target("crc")))
#else
#define PLAIT_HAS_CRC __attribute__((target("+crc")))
#endif

PLAIT_HAS_CRC uint32_t by_instruction(uint32_t crc, const char *p, uint64_t nbytes) {
  constexpr uint64_t kChain = 4096;
  constexpr uint32_t kFar = power_of_x(8 * 2 * kChain), kNear = power_of_x(8 * kChain);
  const auto word = [](const char *at) {
    uint64_t x;
    memcpy(&x, at, 8);
    return x;
  };
  for (; nbytes >= 3 * kChain; p += 3 * kChain, nbytes -= 3 * kChain) {
    uint32_t second = 0, third = 0;
    for (uint64_t i = 0; i < kChain; i += 8) {
      crc = __crc32d(crc, word(p + i));
      second = __crc32d(second, word(p + kChain + i));
      third = __crc32d(third, word(p + 2 * kChain + i));
    }
    crc = product(crc, kFar) ^ product(second, kNear) ^ third;
  }
  for (; nbytes >= 8; p += 8, nbytes -= 8) crc = __crc32d(crc, word(p));
  return byte_by_byte(crc, p, nbytes);
}

Crc32::Way way_of(int number) {
  constexpr unsigned long kCrc = 1 << 7;  // HWCAP_CRC32
  if (number == 0) return by_tables;
  return number == 1 && (getauxval(AT_HWCAP) & kCrc) ? by_instruction : nullptr;
}

#else

Crc32::Way way_of(int number) { return number == 0 ? by_tables : nullptr; }

#endif

}  // namespace

Crc32::Way Crc32::way(int number) {
  return number >= 0 && number < kWays ? way_of(number) : nullptr;
}

void Crc32::update(const void *data, uint64_t nbytes) {
  static const Way best = [] {
    int number = kWays - 1;
    while (!way(number)) number--;
    return way(number);
  }();
  crc_ = best(crc_, static_cast<const char *>(data), nbytes);
}

}  // namespace plait::core
