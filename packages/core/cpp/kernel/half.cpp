#include "kernel/half.h"

#include "kernel/integers.h"

namespace plait::core {
namespace {

constexpr int64_t kChunk = 256;  // elements that are gathered at a time

template <class H>
PLAIT_INLINE void widen_strided(float *to, const uint16_t *from, int64_t n, int64_t step) {
  if (step == 1) return widen_run<H>(to, from, n);
  uint16_t bits[kChunk];
  for (int64_t i = 0; i < n; i += kChunk) {
    const int64_t m = least(kChunk, n - i);
    for (int64_t j = 0; j < m; j++) bits[j] = from[(i + j) * step];
    widen_run<H>(to + i, bits, m);
  }
}

template <class H>
PLAIT_INLINE void narrow_strided(uint16_t *to, const float *from, int64_t n, int64_t step) {
  if (step == 1) return narrow_run<H>(to, from, n);
  uint16_t bits[kChunk];
  for (int64_t i = 0; i < n; i += kChunk) {
    const int64_t m = least(kChunk, n - i);
    narrow_run<H>(bits, from + i, m);
    for (int64_t j = 0; j < m; j++) to[(i + j) * step] = bits[j];
  }
}

}  // namespace

void widen(Kind k, float *to, const uint16_t *from, int64_t n, int64_t step) {
  if constexpr (selects(F16) || selects(BF16))
    k == BF16 ? widen_strided<Bfloat>(to, from, n, step) : widen_strided<Half>(to, from, n, step);
}

void narrow(Kind k, uint16_t *to, const float *from, int64_t n, int64_t step) {
  if constexpr (selects(F16) || selects(BF16))
    k == BF16 ? narrow_strided<Bfloat>(to, from, n, step) : narrow_strided<Half>(to, from, n, step);
}

}  // namespace plait::core
