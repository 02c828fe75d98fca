// a b + c. Compilers fuse no multiplications and additions on their own (-ffp-contract=off), so
// that every instruction set rounds where the source says. `fused` rounds once where the processor
// has the instruction. Elsewhere it rounds twice, except in the library for the reproducible mode
// (PLAIT_EXACT), which emulates the instruction and gives its bits.
#pragma once
#include <cstdint>
#include <cstring>

#if !defined(__CUDACC__) && !defined(__FMA__) && !defined(__aarch64__)
#if defined(PLAIT_EXACT)
#include "kernel/fused_exact.h"
#endif
#else
#define PLAIT_FUSED 1
#if defined(__aarch64__) && !defined(__CUDACC__)
#include <arm_neon.h>
#endif
#if defined(__x86_64__) && !defined(__clang__)
// declares the functions of AVX-512 for those that are compiled for it
#pragma GCC push_options
#pragma GCC target("avx512f")
#pragma GCC pop_options
#endif
#endif

#if defined(__CUDACC__)
#define PLAIT_FUSED_INLINE __host__ __device__ inline
#else
#define PLAIT_FUSED_INLINE inline __attribute__((always_inline))
#endif

namespace plait::scalar::math {

#if defined(PLAIT_FUSED)
PLAIT_FUSED_INLINE float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
PLAIT_FUSED_INLINE double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }
#elif !defined(PLAIT_EXACT)
PLAIT_FUSED_INLINE float fused(float a, float b, float c) { return a * b + c; }
PLAIT_FUSED_INLINE double fused(double a, double b, double c) { return a * b + c; }
#endif

}  // namespace plait::scalar::math

#if !defined(__CUDACC__)
namespace plait::core {

using scalar::math::fused;

// Calls f on the 16-byte parts of vectors.
template <class Part, class V, class F>
PLAIT_FUSED_INLINE V by_parts(const V &a, const V &b, const V &c, F f) {
  constexpr int n = int(sizeof(V) / 16);
  Part x[n], y[n], z[n];
  memcpy(x, &a, sizeof(V));
  memcpy(y, &b, sizeof(V));
  memcpy(z, &c, sizeof(V));
  for (int i = 0; i < n; i++) z[i] = f(x[i], y[i], z[i]);
  V r;
  memcpy(&r, z, sizeof(V));
  return r;
}

// The same in each lane of vectors of 16, 32 or, with AVX-512, 64 bytes.
template <class V>
PLAIT_FUSED_INLINE V fused(V a, V b, V c) {
  typedef __typeof__(V{}[0] + V{}[0]) Element;
  constexpr bool single = sizeof(Element) == 4;
#if !defined(PLAIT_FUSED) && !defined(PLAIT_EXACT)
  (void)single;
  return a * b + c;
#elif !defined(PLAIT_FUSED)
  if constexpr (single) {
    return by_parts<__m128>(
        a, b, c, [](__m128 x, __m128 y, __m128 z) { return scalar::math::fused_floats(x, y, z); });
  } else {
    V r = c;
    for (int i = 0; i < int(sizeof(V) / 8); i++) r[i] = fused(a[i], b[i], c[i]);
    return r;
  }
#elif defined(__clang__)
  (void)single;
  return __builtin_elementwise_fma(a, b, c);
#elif defined(__x86_64__)
  typedef float F4 __attribute__((vector_size(16)));
  typedef float F8 __attribute__((vector_size(32)));
  typedef float F16 __attribute__((vector_size(64)));
  typedef double D2 __attribute__((vector_size(16)));
  typedef double D4 __attribute__((vector_size(32)));
  typedef double D8 __attribute__((vector_size(64)));
  if constexpr (sizeof(V) == 16) {
    if constexpr (single)
      return V(__builtin_ia32_vfmaddps(F4(a), F4(b), F4(c)));
    else
      return V(__builtin_ia32_vfmaddpd(D2(a), D2(b), D2(c)));
  } else if constexpr (sizeof(V) == 32) {
    if constexpr (single)
      return V(__builtin_ia32_vfmaddps256(F8(a), F8(b), F8(c)));
    else
      return V(__builtin_ia32_vfmaddpd256(D4(a), D4(b), D4(c)));
  } else {  // all lanes, the current rounding
    if constexpr (single)
      return V(__builtin_ia32_vfmaddps512_mask(F16(a), F16(b), F16(c), uint16_t(-1), 4));
    else
      return V(__builtin_ia32_vfmaddpd512_mask(D8(a), D8(b), D8(c), uint8_t(-1), 4));
  }
#else
  if constexpr (single)
    return by_parts<float32x4_t>(
        a, b, c, [](float32x4_t x, float32x4_t y, float32x4_t z) { return vfmaq_f32(z, x, y); });
  else
    return by_parts<float64x2_t>(
        a, b, c, [](float64x2_t x, float64x2_t y, float64x2_t z) { return vfmaq_f64(z, x, y); });
#endif
}

}  // namespace plait::core
#endif
