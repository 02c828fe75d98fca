// The bits of fused multiplications and additions on processors without the instruction, for
// kernel/fused.h. The functions are not inlined: code that is unrolled for registers would become
// too long for compilers.
#pragma once
#include <emmintrin.h>

#include <cstdint>
#include <cstring>

namespace plait::scalar::math {

#define PLAIT_APART inline __attribute__((noinline))

// x + y rounded to odd: where the sum is inexact, of the two numbers around it the one whose last
// bit is set. Rounded once more, to fewer bits, it gives what a single rounding gives (Boldo and
// Melquiond, Emulation of FMA and correctly rounded sums, 2008). Two sums at once.
inline __m128d odd_sums(__m128d x, __m128d y) {
  typedef int64_t Bits __attribute__((vector_size(16)));
  const __m128d s = x + y, t = s - x, error = (x - (s - t)) + (y - t), zero = {};
  const Bits grows = Bits(error > zero), shrinks = Bits(error < zero), positive = Bits(s > zero);
  const Bits bits = Bits(s), inexact = (grows | shrinks) & ~bits & 1, away = grows ^ positive;
  return __m128d(bits + ((inexact ^ away) - away));
}

// The product of two float32 numbers is exact in float64.
inline __m128d odd_product_sums(__m128 a, __m128 b, __m128 c) {
  return odd_sums(_mm_cvtps_pd(a) * _mm_cvtps_pd(b), _mm_cvtps_pd(c));
}
PLAIT_APART __m128 fused_floats(__m128 a, __m128 b, __m128 c) {
  const __m128d low = odd_product_sums(a, b, c);
  const __m128d high =
      odd_product_sums(_mm_movehl_ps(a, a), _mm_movehl_ps(b, b), _mm_movehl_ps(c, c));
  return _mm_movelh_ps(_mm_cvtpd_ps(low), _mm_cvtpd_ps(high));
}
PLAIT_APART float fused(float a, float b, float c) {
  return _mm_cvtss_f32(_mm_cvtpd_ps(odd_product_sums(_mm_set_ss(a), _mm_set_ss(b), _mm_set_ss(c))));
}

// x and its parts of 26 bits.
struct Halves {
  double high, low;
  explicit Halves(double x) {
    const double t = x * 134217729.0;
    high = t - (t - x);
    low = x - high;
  }
};

// The product is the sum of two numbers (Dekker), which are added to c as in the paper above. The C
// library has the cases where a part could leave the range of float64.
PLAIT_APART double fused(double a, double b, double c) {
  const double p = a * b, largest = 0x1p990, size = __builtin_fabs(p);
  if (a == 0 || b == 0) return p + c;
  if (!(__builtin_fabs(a) < largest && __builtin_fabs(b) < largest && __builtin_fabs(c) < largest &&
        size < largest && size > 0x1p-900))
    return __builtin_fma(a, b, c);
  const Halves x(a), y(b);
  const double rest = ((x.high * y.high - p) + x.high * y.low + x.low * y.high) + x.low * y.low;
  const double s = c + rest, t = s - c, lost = (c - (s - t)) + (rest - t);
  const double sum = p + s, u = sum - p, error = (p - (sum - u)) + (s - u);
  return sum + _mm_cvtsd_f64(odd_sums(_mm_set_sd(lost), _mm_set_sd(error)));
}

#undef PLAIT_APART

}  // namespace plait::scalar::math
