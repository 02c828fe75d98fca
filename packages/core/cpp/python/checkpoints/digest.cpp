// The digest is made of sums of columns, which run at the speed of the cache.
#include "checkpoints/digest.hpp"

#include <cstdio>
#include <cstring>

namespace plait::core {
namespace {

constexpr uint64_t kFactor = 0x9E3779B97F4A7C15;  // odd, so multiplication is one to one
constexpr uint64_t kAtOnce = 8;  // rows for which the sums are loaded and stored once

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
uint64_t word(const char *p) {
  uint64_t x;
  memcpy(&x, p, 8);
  return x;
}
#else
uint64_t word(const char *p) {
  uint64_t x;
  memcpy(&x, p, 8);
  return __builtin_bswap64(x);
}
#endif

void add_row(uint64_t *sums, const char *p) {
  for (uint64_t c = 0; c < Digest::kColumns; c++) sums[c] += word(p + 8 * c);
}

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
typedef uint64_t Words __attribute__((vector_size(32), aligned(8), may_alias));

__attribute__((always_inline)) inline void add_eight(uint64_t *sums, const char *p) {
  uint64_t c = 0;
  for (; c + 4 <= Digest::kColumns; c += 4, p += 32) {
    Words sum = *reinterpret_cast<Words *>(sums + c);
#pragma GCC unroll 8
    for (uint64_t r = 0; r < kAtOnce; r++)
      sum += *reinterpret_cast<const Words *>(p + r * Digest::kRow);
    *reinterpret_cast<Words *>(sums + c) = sum;
  }
  for (; c < Digest::kColumns; c++, p += 8)
    for (uint64_t r = 0; r < kAtOnce; r++) sums[c] += word(p + r * Digest::kRow);
}
#if defined(__x86_64__)
__attribute__((target("avx2"))) void add_eight_avx2(uint64_t *sums, const char *p) {
  add_eight(sums, p);
}
#endif
void add_eight_base(uint64_t *sums, const char *p) { add_eight(sums, p); }
using AddEight = void (*)(uint64_t *, const char *);
AddEight best_add_eight() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2")) return add_eight_avx2;
#endif
  return add_eight_base;
}
#else
using AddEight = void (*)(uint64_t *, const char *);
void add_eight_base(uint64_t *sums, const char *p) {
  for (uint64_t r = 0; r < kAtOnce; r++) add_row(sums, p + r * Digest::kRow);
}
AddEight best_add_eight() { return add_eight_base; }
#endif

uint64_t mixed(uint64_t h, uint64_t x) {  // one to one in each argument
  h = (h ^ x) * kFactor;
  return h ^ h >> 32;
}

}  // namespace

void Digest::update(const void *data, uint64_t nbytes) {
  static const AddEight add_eight_rows = best_add_eight();
  const char *p = static_cast<const char *>(data);
  while (nbytes) {
    if (rows_ % kBlock == 0)
      for (uint64_t &sum : sums_) sum *= kFactor;
    if (nbytes >= kAtOnce * kRow && rows_ % kAtOnce == 0) {
      add_eight_rows(sums_, p);
      rows_ += kAtOnce;
      p += kAtOnce * kRow;
      nbytes -= kAtOnce * kRow;
    } else if (nbytes >= kRow) {
      add_row(sums_, p);
      rows_++;
      p += kRow;
      nbytes -= kRow;
    } else {
      char last[kRow] = {};
      memcpy(last, p, nbytes);
      add_row(sums_, last);
      rows_++;
      nbytes = 0;
    }
  }
}

std::string Digest::text() const {
  uint64_t lanes[4] = {nbytes_, 0, 0, 0};  // side by side, as each waits for its own products only
  for (uint64_t c = 0; c < kColumns; c++) lanes[c % 4] = mixed(lanes[c % 4], sums_[c]);
  uint64_t h = lanes[0];
  for (int i = 1; i < 4; i++) h = mixed(h, lanes[i]);
  char out[17];
  snprintf(out, sizeof out, "%016llx", static_cast<unsigned long long>(h));
  return out;
}

}  // namespace plait::core
