// float16 and bfloat16 as bits: conversions to and from float32 in plain integer arithmetic, which
// vectorises.
#ifndef PLAIT_CORE_HALF_H
#define PLAIT_CORE_HALF_H
#include "kernel/kernel.h"

#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace plait::core {

PLAIT_INLINE uint32_t bits_of(float x) {
  uint32_t u;
  memcpy(&u, &x, 4);
  return u;
}
PLAIT_INLINE float float_of(uint32_t u) {
  float x;
  memcpy(&x, &u, 4);
  return x;
}

PLAIT_INLINE float bfloat_value(uint16_t b) { return float_of(uint32_t(b) << 16); }

PLAIT_INLINE uint16_t bfloat_bits(float x) {  // to nearest, ties to even
  const uint32_t u = bits_of(x);
  const uint32_t rounded = (u + 0x7fff + ((u >> 16) & 1)) >> 16;
  return uint16_t(x != x ? (u >> 16) | 0x40 : rounded);
}

PLAIT_INLINE float half_value(uint16_t h) {
  const uint32_t sign = uint32_t(h & 0x8000) << 16, rest = uint32_t(h & 0x7fff) << 13;
  // 2^112 moves the exponent's bias from 15 to 127 and makes subnormal numbers normal on the way
  const float scaled = float_of(rest) * 0x1p112f;
  const uint32_t special = bits_of(scaled) | 0x7f800000u;  // infinities and NaN keep their payload
  return float_of(sign | (rest >= 0x0f800000u ? special : bits_of(scaled)));
}

PLAIT_INLINE uint16_t half_bits(float x) {  // to nearest, ties to even
  const uint32_t u = bits_of(x), sign = (u >> 16) & 0x8000, rest = u & 0x7fffffff;
  const uint32_t normal = (rest + 0xfff + ((rest >> 13) & 1) - (112u << 23)) >> 13;
  // adding 0.5 aligns a subnormal result's last bit with float32's, whose own addition then rounds
  // it
  const uint32_t small = bits_of(float_of(rest) + 0.5f) - 0x3f000000u;
  const uint32_t finite = rest < (113u << 23) ? small : normal;
  const uint32_t special = rest > 0x7f800000u ? 0x7e00 | ((rest >> 13) & 0x3ff) : 0x7c00;
  return uint16_t(sign | (rest >= 0x477ff000u ? special : finite));
}

// float64 -> float32 such that a second rounding to fewer bits gives what rounding once would have
// given.
PLAIT_INLINE float round_to_odd(double x) {
  const float f = float(x);
  const uint32_t u = bits_of(f);
  const double error = x - double(f);
  const bool inexact = error != 0 && error == error && (u & 0x7f800000u) != 0x7f800000u;
  // toward zero first: one step back where rounding went away from zero
  const bool away = (error > 0) == ((u >> 31) != 0);
  return float_of(inexact ? (u - (away ? 1 : 0)) | 1 : u);
}

// Conversions of contiguous runs.

PLAIT_INLINE void widen_halves(float *to, const uint16_t *from, int64_t n) {
  int64_t i = 0;
#if defined(__F16C__)
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(to + i,
                     _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i *>(from + i))));
#endif
  for (; i < n; i++) to[i] = half_value(from[i]);
}
PLAIT_INLINE void narrow_halves(uint16_t *to, const float *from, int64_t n) {
  int64_t i = 0;
#if defined(__F16C__)
  for (; i + 8 <= n; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i *>(to + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
#endif
  for (; i < n; i++) to[i] = half_bits(from[i]);
}
PLAIT_INLINE void widen_bfloats(float *to, const uint16_t *from, int64_t n) {
  for (int64_t i = 0; i < n; i++) to[i] = bfloat_value(from[i]);
}
PLAIT_INLINE void narrow_bfloats(uint16_t *to, const float *from, int64_t n) {
  for (int64_t i = 0; i < n; i++) to[i] = bfloat_bits(from[i]);
}

}  // namespace plait::core
#endif  // PLAIT_CORE_HALF_H
