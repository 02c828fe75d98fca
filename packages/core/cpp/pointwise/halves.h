// Loops over float16 and bfloat16 that convert the elements in registers and compute in float32.
#pragma once
#include <type_traits>
#include <utility>

#include "kernel/half.h"

namespace plait::core {

// So many elements are widened, computed and rounded at a time. The rest of a row is copied into as
// many.
constexpr int64_t kHalves = 32;

// An operand: halves, or the same number for all elements.
template <class H>
struct HalvesOf {
  const uint16_t *data;
  PLAIT_INLINE void widen(float *to, int64_t i) const { widen_run<H>(to, data + i, kHalves); }
  PLAIT_INLINE HalvesOf padded(uint16_t *copy, int64_t i, int64_t n) const {
    memcpy(copy, data + i, size_t(n) * 2);
    return {copy};
  }
};
struct RepeatedHalf {
  float value;
  PLAIT_INLINE void widen(float *to, int64_t) const {
    for (int64_t j = 0; j < kHalves; j++) to[j] = value;
  }
  PLAIT_INLINE RepeatedHalf padded(uint16_t *, int64_t, int64_t) const { return *this; }
};

// r[j] = f(operands' elements i + j) for j < kHalves. Results are bools, or halves of H.
template <class H, class R, class F, size_t... I, class... P>
PLAIT_INLINE void halves_run(R *r, int64_t i, const F &f, std::index_sequence<I...>, P... p) {
  alignas(32) float x[sizeof...(I)][kHalves];
  (p.widen(x[I], i), ...);
  if constexpr (std::is_same_v<R, bool>) {
    for (int64_t j = 0; j < kHalves; j++) r[j] = f(x[I][j]...);
  } else {
    alignas(32) float y[kHalves];
    for (int64_t j = 0; j < kHalves; j++) y[j] = f(x[I][j]...);
    narrow_run<H>(r, y, kHalves);
  }
}
// r[i] = f(operands' elements i) for i < n
template <class H, class R, class F, size_t... I, class... P>
PLAIT_INLINE void halves_rows(R *r, int64_t n, const F &f, std::index_sequence<I...> operands,
                              P... p) {
  int64_t i = 0;
  for (; i + kHalves <= n; i += kHalves) halves_run<H>(r + i, i, f, operands, p...);
  if (i == n) return;
  uint16_t rest[sizeof...(I)][kHalves] = {};
  R results[kHalves];
  const int64_t left = n - i;
  halves_run<H>(results, 0, f, operands, p.padded(rest[I], i, left)...);
  memcpy(r + i, results, size_t(left) * sizeof(R));
}

}  // namespace plait::core
