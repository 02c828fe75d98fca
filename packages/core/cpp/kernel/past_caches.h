// Stores past the caches: results of many bytes leave the caches before they are read, and the
// lines that are overwritten are not read first.
#pragma once
#include "kernel/vec.h"

namespace plait::core {

constexpr int64_t kPastCaches = 1 << 24;  // bytes of a result that no core's cache keeps

// V: vectors of 32 bytes, one or more; to a multiple of 32 bytes.
template <class T, class V>
PLAIT_INLINE void store_past_aligned(T *to, V v) {
#if defined(__AVX2__) && defined(__x86_64__)
  typedef float Floats __attribute__((vector_size(32)));
  constexpr int kParts = sizeof v / 32;
  Floats part[kParts];
  memcpy(part, &v, sizeof v);
  PLAIT_UNROLL for (int i = 0; i < kParts; i++) {
    __builtin_ia32_movntps256(reinterpret_cast<float *>(to) + 8 * i, part[i]);
  }
#else
  memcpy(to, &v, sizeof v);
#endif
}
template <class T>
PLAIT_INLINE void store_past(T *to, Vec<T> v) {
  reinterpret_cast<uintptr_t>(to) % 32 ? store(to, v) : store_past_aligned(to, v);
}

template <class T>
PLAIT_INLINE void copy_row_past(T *to, const T *from, int64_t n) {
  const int64_t whole = n / kLanes<T> * kLanes<T>;
  for (int64_t i = 0; i < whole; i += kLanes<T>) store_past(to + i, load(from + i));
  for (int64_t i = whole; i < n; i++) to[i] = from[i];
}

// Between such stores and whoever reads them.
PLAIT_INLINE void finish_stores() {
#if defined(__AVX2__) && defined(__x86_64__)
  __builtin_ia32_sfence();
#endif
}

}  // namespace plait::core
