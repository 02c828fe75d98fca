// Conversions of contiguous runs of float16 and bfloat16 to and from float32, and of float64 to
// them.
#ifndef PLAIT_CORE_HALF_H
#define PLAIT_CORE_HALF_H
#include <plait/half.h>

#include "kernel/kernel.h"

#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace plait::core {

// float64 to float32 such that rounding the result to fewer bits equals rounding the float64 once.
PLAIT_INLINE float round_to_odd(double x) {
  const float f = float(x);
  const uint32_t u = plait_float_bits(f);
  const double error = x - double(f);
  const bool inexact = error != 0 && error == error && (u & 0x7f800000u) != 0x7f800000u;
  // toward zero first: one step back where rounding went away from zero
  const bool away = (error > 0) == ((u >> 31) != 0);
  return plait_float_of_bits(inexact ? (u - (away ? 1 : 0)) | 1 : u);
}

// Conversions of contiguous runs.

PLAIT_INLINE void widen_halves(float *to, const uint16_t *from, int64_t n) {
  int64_t i = 0;
#if defined(__F16C__)
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(to + i,
                     _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i *>(from + i))));
#endif
  for (; i < n; i++) to[i] = plait_float16_to_float(from[i]);
}
PLAIT_INLINE void narrow_halves(uint16_t *to, const float *from, int64_t n) {
  int64_t i = 0;
#if defined(__F16C__)
  for (; i + 8 <= n; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i *>(to + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
#endif
  for (; i < n; i++) to[i] = plait_float16_of_float(from[i]);
}
PLAIT_INLINE void widen_bfloats(float *to, const uint16_t *from, int64_t n) {
  for (int64_t i = 0; i < n; i++) to[i] = plait_bfloat16_to_float(from[i]);
}
PLAIT_INLINE void narrow_bfloats(uint16_t *to, const float *from, int64_t n) {
  for (int64_t i = 0; i < n; i++) to[i] = plait_bfloat16_of_float(from[i]);
}

}  // namespace plait::core
#endif  // PLAIT_CORE_HALF_H
