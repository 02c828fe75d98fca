// Stores past the caches: results of many bytes leave the caches before they are read, and the
// lines that are overwritten are not read first.
#pragma once
#include "kernel/vec.h"

namespace plait::core {

constexpr int64_t kPastCaches = 1 << 24;  // bytes of a result that no core's cache keeps

template <class T>
PLAIT_INLINE void store_past_aligned(T *to, Vec<T> v) {  // to a multiple of 32 bytes
#if defined(__AVX2__) && defined(__x86_64__)
  typedef float Floats __attribute__((vector_size(32)));
  __builtin_ia32_movntps256(reinterpret_cast<float *>(to), reinterpret_cast<Floats>(v));
#else
  store(to, v);
#endif
}
template <class T>
PLAIT_INLINE void store_past(T *to, Vec<T> v) {
  reinterpret_cast<uintptr_t>(to) % 32 ? store(to, v) : store_past_aligned(to, v);
}

// Between such stores and whoever reads them.
PLAIT_INLINE void finish_stores() {
#if defined(__AVX2__) && defined(__x86_64__)
  __builtin_ia32_sfence();
#endif
}

}  // namespace plait::core
