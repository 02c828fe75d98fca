// Elementary functions of one number, shared by every backend: plain C++ without branches, so that
// loops over them vectorise. float32 uses polynomials (minimax fits, errors of a few units in the
// last place, special values as in IEEE 754 and C); float64 calls the C library.
#pragma once
#include <math.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernel/fused.h"

// PLAIT_HD: a function for each element. PLAIT_HD_CALL: one that is too large to be copied into
// every loop. PLAIT_TABLE: constants that are indexed.
#if defined(__CUDACC__)
#define PLAIT_HD __host__ __device__ inline
#define PLAIT_HD_CALL inline __host__ __device__ __noinline__
#define PLAIT_TABLE static __device__ constexpr
#else
#define PLAIT_HD inline __attribute__((always_inline))
#define PLAIT_HD_CALL inline
#define PLAIT_TABLE inline constexpr
#endif

// Defines an operator's function of one number as the function of that name in `math`.
#define PLAIT_MATH_UNARY(name) \
  template <class T>           \
  PLAIT_HD T name(T x) {       \
    return math::name(x);      \
  }

namespace plait::scalar::math {

// The argument of a declaration `name(OfArrays)` beside a function `name`: loops over it are not
// vectorised where one of its arguments is the same number for all elements.
template <class T>
struct OfArrays {};

// The argument of a declaration `name(FewSteps)` beside a function `name` of a few instructions:
// reading and writing the elements takes most of a loop's time.
struct FewSteps {};
#define PLAIT_FEW_STEPS(name) void name(math::FewSteps);

// Integers compute in unsigned types, which wrap around where signed ones would be undefined; other
// numbers in themselves.
template <class T>
using wide = std::conditional_t<!std::is_integral_v<T>, T,
                                std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>>;

template <class T>
constexpr bool is_floating = false;
template <>
inline constexpr bool is_floating<float> = true;
template <>
inline constexpr bool is_floating<double> = true;
template <class T>
constexpr bool is_signed = T(-1) < T(0);

// Bits and constants.

PLAIT_HD uint32_t bits(float x) {
  uint32_t u;
  memcpy(&u, &x, 4);
  return u;
}
PLAIT_HD float from_bits(uint32_t u) {
  float x;
  memcpy(&x, &u, 4);
  return x;
}
PLAIT_HD uint64_t bits(double x) {
  uint64_t u;
  memcpy(&u, &x, 8);
  return u;
}
PLAIT_HD double from_bits(uint64_t u) {
  double x;
  memcpy(&x, &u, 8);
  return x;
}
constexpr float kInf = __builtin_inff();
constexpr float kNan = __builtin_nanf("");
constexpr float kLog2e = 1.44269504089f;
constexpr float kLn2Hi = 0.693145751953125f,
                kLn2Lo = 1.42860682031e-6f;  // Hi * n is exact for |n| < 512
constexpr float kRound =
    12582912.0f;  // 1.5 * 2^23: x + kRound has x's nearest integer in its low bits

PLAIT_HD float abs(float x) { return __builtin_fabsf(x); }
PLAIT_HD double abs(double x) { return __builtin_fabs(x); }
PLAIT_HD float copysign(float x, float sign) { return __builtin_copysignf(x, sign); }
PLAIT_HD double copysign(double x, double sign) { return __builtin_copysign(x, sign); }
PLAIT_HD float sqrt(float x) { return __builtin_sqrtf(x); }
PLAIT_HD double sqrt(double x) { return __builtin_sqrt(x); }
PLAIT_HD float power_of_two(int32_t n) { return from_bits((uint32_t(n) + 127u) << 23); }

// Exponentials.

// x = n ln 2 + r with |r| <= ln 2 / 2
PLAIT_HD float reduce_ln2(float x, int32_t *n) {
  const float t = fused(x, kLog2e, kRound), k = t - kRound;
  *n = int32_t(bits(t) - bits(kRound));
  return fused(-k, kLn2Lo, fused(-k, kLn2Hi, x));
}

// e^r for |r| <= ln 2 / 2
PLAIT_HD float exp_reduced(float r) {
  float q = 0.001395169736f;
  q = fused(q, r, 0.008369598334f);
  q = fused(q, r, 0.04166618764f);
  q = fused(q, r, 0.1666651289f);
  q = fused(q, r, 0.5000000101f);
  return 1.0f + fused(r * r, q, r);
}
PLAIT_HD float exp(float x) {
  float y = x < -104.0f ? -104.0f : x;  // NaN passes both
  y = y > 89.0f ? 89.0f : y;
  int32_t n;
  const float p = exp_reduced(reduce_ln2(y, &n));
  const int32_t half = n >> 1;  // two steps reach subnormal results and infinity
  return p * power_of_two(half) * power_of_two(n - half);
}
// exp(x) for x <= 0, with the same bits in fewer steps: 2^(n + 64) and the product with it are
// exact, so that subnormal results are rounded once
PLAIT_HD float exp_negative(float x) {
  const float y = x < -104.0f ? -104.0f : x;
  const float t = fused(y, kLog2e, kRound), k = t - kRound;
  const float p = exp_reduced(fused(-k, kLn2Lo, fused(-k, kLn2Hi, y)));
  return p * from_bits((bits(t) << 23) + (191u << 23)) * 0x1p-64f;
}

PLAIT_HD float expm1(float x) {
  float y = x < -25.0f ? -25.0f : x;
  y = y > 89.0f ? 89.0f : y;
  int32_t n;
  const float r = reduce_ln2(y, &n);
  float q = 0.0001991558899f;
  q = fused(q, r, 0.001394204693f);
  q = fused(q, r, 0.008333270677f);
  q = fused(q, r, 0.04166634212f);
  q = fused(q, r, 0.1666666683f);
  q = fused(q, r, 0.5000000049f);
  const float p = fused(r * r, q, r), half = power_of_two(n - 1);
  const float result = 2.0f * (half * p + (half - 0.5f));
  return x == 0.0f ? x : result;  // keeps -0
}

// exp(-|x|) for the numbers, for a factor that keeps NaN: exp(-104) for NaN. A tree of sums, which
// has half of the steps after one another.
PLAIT_HD float exp_minus_size(float x) {
  const uint32_t size = bits(x) & 0x7fffffffu, most = 0x42d00000u;  // 104
  const float y = from_bits(size < most ? size : most);
  const float t = fused(y, -kLog2e, kRound), k = t - kRound;
  const float r = fused(-k, kLn2Lo, fused(-k, kLn2Hi, -y)), z = r * r;
  const float high = fused(0.001395169736f, z, fused(0.008369598334f, r, 0.04166618764f));
  const float p = 1.0f + fused(z, fused(high, z, fused(0.1666651289f, r, 0.5000000101f)), r);
  return p * from_bits((bits(t) << 23) + (191u << 23)) * 0x1p-64f;
}

PLAIT_HD double exp(double x) { return ::exp(x); }
PLAIT_HD double exp_minus_size(double x) { return ::exp(-abs(x)); }
PLAIT_HD double exp_negative(double x) { return ::exp(x); }
PLAIT_HD double expm1(double x) { return ::expm1(x); }

// 2^n 2^r with |r| <= 1/2
PLAIT_HD float exp2(float x) {
  float y = x < -151.0f ? -151.0f : x;  // NaN passes both
  y = y > 128.0f ? 128.0f : y;
  const float t = y + kRound, k = t - kRound, r = y - k;
  const int32_t n = int32_t(bits(t) - bits(kRound)), half = n >> 1;
  float q = 0.0001545316294512069f;
  q = fused(q, r, 0.0013390863364671234f);
  q = fused(q, r, 0.009618082557277852f);
  q = fused(q, r, 0.05550357114219078f);
  q = fused(q, r, 0.24022650760568126f);
  q = fused(q, r, 0.6931471880262288f);
  return fused(r, q, 1.0f) * power_of_two(half) * power_of_two(n - half);
}
PLAIT_HD double exp2(double x) { return ::exp2(x); }

// Logarithms.

// x = 2^k (1 + f), 1 + f in [sqrt(1/2), sqrt(2)); returns f. Positive x only.
PLAIT_HD float split_exponent(float x, float *k) {
  const bool tiny = x < 0x1p-126f;
  const uint32_t u = bits(tiny ? x * 0x1p25f : x);
  const int32_t e = int32_t(u - 0x3f3504f3u) >> 23;
  *k = float(e - (tiny ? 25 : 0));
  return from_bits(u - (uint32_t(e) << 23)) - 1.0f;
}

// t in log(1 + f) = f - f^2 / 2 + t
PLAIT_HD float log_tail(float f) {
  float q = 0.06915591789f;
  q = fused(q, f, -0.1178982972f);
  q = fused(q, f, 0.1187288685f);
  q = fused(q, f, -0.1238433975f);
  q = fused(q, f, 0.1421866967f);
  q = fused(q, f, -0.1666925169f);
  q = fused(q, f, 0.2000222603f);
  q = fused(q, f, -0.2499998658f);
  q = fused(q, f, 0.3333331045f);
  return f * f * f * q;
}

PLAIT_HD float log_special(float x, float result) {  // the error of the formula
  const float r = x > 0.0f ? result : x == 0.0f ? -kInf : kNan;
  return x == kInf ? x : r;
}

PLAIT_HD float log(float x) {
  float k;
  const float f = split_exponent(x, &k);
  const float tail = fused(k, kLn2Lo, log_tail(f));
  return log_special(x, k * kLn2Hi + (f - (0.5f * f * f - tail)));
}

PLAIT_HD float log1p(float x) {
  const float u = 1.0f + x;
  float k;
  const float f = split_exponent(u, &k);
  const float lost = (x - (u - 1.0f)) / u;  // the rounding error of 1 + x
  const float tail = log_tail(f) + (k * kLn2Lo + lost);
  const float result = k * kLn2Hi + (f - (0.5f * f * f - tail));
  const float r = log_special(u, result);
  return x == 0.0f ? x : r;
}

// log2 and log10 are exact where the result is a whole number.
PLAIT_HD float log2(float x) {
  float k;
  const float f = split_exponent(x, &k);
  const double m = double(f) - double(0.5f * f * f - log_tail(f));
  return log_special(x, float(double(k) + m * 1.4426950408889634));
}

PLAIT_HD float log10(float x) {
  float k;
  const float f = split_exponent(x, &k);
  const double m = double(f) - double(0.5f * f * f - log_tail(f));
  return log_special(x, float(double(k) * 0.30102999566398120 + m * 0.43429448190325183));
}

PLAIT_HD double log(double x) { return ::log(x); }
PLAIT_HD double log1p(double x) { return ::log1p(x); }
PLAIT_HD double log2(double x) { return ::log2(x); }
PLAIT_HD double log10(double x) { return ::log10(x); }

// Hyperbolic functions.

PLAIT_HD float tanh(float x) {
  float a = abs(x);
  a = a > 10.0f ? 10.0f : a;
  const float e = expm1(2.0f * a);
  return copysign(e / (e + 2.0f), x);
}
PLAIT_HD float sinh(float x) {
  const float a = abs(x), e = expm1(a), h = exp(0.5f * a);
  const float small = 0.5f * (e + e / (e + 1.0f)), large = 0.5f * h * h;
  return copysign(a > 88.0f ? large : small, x);
}
PLAIT_HD float cosh(float x) {
  const float a = abs(x), e = exp(a), h = exp(0.5f * a);
  return a > 88.0f ? 0.5f * h * h : 0.5f * e + 0.5f / e;
}
PLAIT_HD double tanh(double x) { return ::tanh(x); }
PLAIT_HD double sinh(double x) { return ::sinh(x); }
PLAIT_HD double cosh(double x) { return ::cosh(x); }

// 1 / (1 + e^-x). Small real results keep their bits, as no exponential overflows.
template <class T>
PLAIT_HD T sigmoid(T x) {
  if constexpr (std::is_floating_point<T>::value) {
    const T e = exp_negative(-abs(x));
    return (x < T(0) ? e : T(1)) / (T(1) + e);
  } else {
    return T(1) / (T(1) + exp(-x));
  }
}
// log(1 + exp(x)) without overflow
template <class T>
PLAIT_HD T softplus(T x) {
  const T positive = x > T(0) ? x : x != x ? x : T(0);
  return positive + log1p(exp(-abs(x)));
}

// The error function.

PLAIT_HD float erf(float x) {
  float a = abs(x);
  const float t = x * x;
  float p = 7.853908531e-5f;
  p = fused(p, t, -0.0008010206852f);
  p = fused(p, t, 0.005188329061f);
  p = fused(p, t, -0.02685381259f);
  p = fused(p, t, 0.1128358516f);
  p = fused(p, t, -0.3761262583f);
  p = fused(p, t, 1.128379166f);
  a = a > 3.95f ? 3.95f : a;
  float q = 2.149668351e-5f;  // -log(erfc(a))
  q = fused(q, a, -0.0004391130012f);
  q = fused(q, a, 0.004193643428f);
  q = fused(q, a, -0.02517905364f);
  q = fused(q, a, 0.1083726125f);
  q = fused(q, a, 0.6332624895f);
  q = fused(q, a, 1.129556892f);
  q = fused(q, a, -0.0001834570026f);
  const float outer = copysign(1.0f - exp(-q), x);
  return abs(x) < 1.0f ? x * p : outer;
}
PLAIT_HD double erf(double x) { return ::erf(x); }
// exp(a^2) erfc(a) / 2 for a >= 0, with an error below that of float32: the first 14 terms of the
// series of erfcx in error_functions.h, as a polynomial
PLAIT_HD double half_erfcx(double a) {
  const double u = (a - 3.75) / (a + 3.75);
  double q = 1.8521947386750102e-05;
  q = fused(q, u, 2.2046718905694024e-05);
  q = fused(q, u, -0.00028431307575109795);
  q = fused(q, u, 0.00033016745627228056);
  q = fused(q, u, 0.0017511576292398032);
  q = fused(q, u, -0.009770087183368234);
  q = fused(q, u, 0.028364105117372054);
  q = fused(q, u, -0.0586854404936311);
  q = fused(q, u, 0.09230393753827405);
  q = fused(q, u, -0.10880522754949956);
  q = fused(q, u, 0.0822767739900992);
  q = fused(q, u, 0.003585495314063103);
  q = fused(q, u, -0.14024059953590887);
  q = fused(q, u, 1.2375126300326993);
  return q / (2 + 4 * a);
}
// exp(-a^2) erfcx(a). The factor (a + 2) erfcx(a) is a polynomial in u = (a - 1) / (a + 2) with a
// relative error of 5e-9; what is rounded off it, its quotient, and a^2 is added to small terms.
PLAIT_HD float erfc(float x) {
  const float size = abs(x), a = size > 10.5f ? 10.5f : size;
  const float d = a + 2.0f, inverse = 1.0f / d, u = (a - 1.0f) * inverse;
  float s = 0.00116136362988f;
  s = fused(s, u, -0.00234512167677f);
  s = fused(s, u, -0.00386062829343f);
  s = fused(s, u, 0.0046353793993f);
  s = fused(s, u, 0.0179661308f);
  s = fused(s, u, -0.00150913075045f);
  s = fused(s, u, -0.084174728081f);
  s = fused(s, u, -0.00725897338986f);
  s = fused(s, u, 0.532967189907f);
  s = fused(s, u, -1.1761574593f);
  constexpr double first = 1.2827507249438455;
  constexpr float c = float(first), c_low = float(first - double(c));
  const float q = fused(s, u, c), q_low = fused(s, u, c - q) + c_low;
  const float y = q * inverse;
  const float y_low = (fused(-y, d, q) + (q_low - y * (a - (d - 2.0f)))) * inverse;
  // a^2 = high + low, where 12 bits of a have an exact square
  const float b = from_bits(bits(a) & 0xfffff000u), high = b * b, low = (a - b) * (a + b);
  const float t = fused(a * a, -kLog2e, kRound), k = t - kRound;
  const float r = fused(-k, kLn2Lo, fused(-k, kLn2Hi, -high)) - low, z = r * r;
  const float e = fused(0.001395169736f, z, fused(0.008369598334f, r, 0.04166618764f));
  const float p = fused(z, fused(e, z, fused(0.1666651289f, r, 0.5000000101f)), r);
  const float product = y + fused(y, p, y_low);
  const float tail = product * from_bits((bits(t) << 23) + (191u << 23)) * 0x1p-64f;
  return x != x ? x : x < 0.0f ? 2.0f - tail : tail;
}
PLAIT_HD double erfc(double x) { return ::erfc(x); }

// Trigonometric functions and their inverses.

// (2^(e - 150) * 2 / pi) mod 4 for a float32's exponent field e, in two parts: 24 bits times `hi`
// is exact in float64, so that arguments of any size are reduced exactly (Payne and Hanek's idea).
struct TwoOverPi {
  double hi[256], lo[256];
  constexpr TwoOverPi() : hi(), lo() {
    constexpr uint32_t word[8] = {0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0,
                                  0xdb629599, 0x3c439041, 0xfe5163ab, 0xdebbc561};
    for (int e = 0; e < 255; e++) {
      const int shift = (e ? e : 1) - 150;
      int i = shift - 1 < 1 ? 1 : shift - 1;
      double weight = 1;  // 2^(shift - i)
      for (int k = i; k < shift; k++) weight *= 2;
      for (int k = shift; k < i; k++) weight /= 2;
      for (; i <= shift + 26; i++, weight /= 2)
        if (word[(i - 1) / 32] >> (31 - (i - 1) % 32) & 1) hi[e] += weight;
      for (int last = i + 56; i < last; i++, weight /= 2)
        if (word[(i - 1) / 32] >> (31 - (i - 1) % 32) & 1) lo[e] += weight;
    }
  }
};
PLAIT_TABLE TwoOverPi kTwoOverPi;

// x = quadrant pi / 2 + r with |r| <= pi / 4, for |x| < 2^28: the parts of 2 / pi are short enough
// for exact products.
constexpr float kQuickTrig = 0x1p28f;
PLAIT_HD float reduce_quick(float x, int32_t *quadrant) {
  const double high = double(x) * 0x1.45f306p-1, low = double(x) * 0x1.b9391054a7f0ap-26;
  const double shifted = high + low + 6755399441055744.0, whole = shifted - 6755399441055744.0;
  *quadrant = int32_t(uint32_t(bits(shifted)));
  return float(((high - whole) + low) * 1.5707963267948966);
}
// x = quadrant pi / 2 + r with |r| <= pi / 4, for any x.
PLAIT_HD float reduce_exactly(float x, int32_t *quadrant) {
  const uint32_t u = bits(x) & 0x7fffffffu;
  const int32_t e = int32_t(u >> 23);
  const double m = double(int32_t((u & 0x7fffffu) | (e ? 0x800000u : 0u)));
  const double high = m * kTwoOverPi.hi[e], low = m * kTwoOverPi.lo[e];
  const double shifted = high + low + 6755399441055744.0, whole = shifted - 6755399441055744.0;
  const float r = float(((high - whole) + low) * 1.5707963267948966);
  const int32_t n = int32_t(uint32_t(bits(shifted)));
  const bool negative = bits(x) >> 31;
  *quadrant = negative ? -n : n;
  return e == 255 ? kNan : negative ? -r : r;
}
PLAIT_HD float sin_poly(float r) {
  const float t = r * r;
  const float q = fused(fused(-0.0001951666104f, t, 0.008332173591f), t, -0.1666665487f);
  return fused(r * t, q, r);
}
PLAIT_HD float cos_poly(float r) {
  const float t = r * r;
  const float q = fused(fused(2.443773601e-5f, t, -0.001388736151f), t, 0.04166664675f);
  return 1.0f - (0.5f * t - t * t * q);
}
// Loops of the CPU choose by their largest argument, threads of a GPU by their own.
template <bool quick>
PLAIT_HD float reduce_half_pi(float x, int32_t *quadrant) {
#if defined(__CUDA_ARCH__)
  if (abs(x) < kQuickTrig) return reduce_quick(x, quadrant);
#endif
  return quick ? reduce_quick(x, quadrant) : reduce_exactly(x, quadrant);
}
template <bool quick = false>
PLAIT_HD float sin(float x) {
  int32_t n;
  const float r = reduce_half_pi<quick>(x, &n);
  const float y = n & 1 ? cos_poly(r) : sin_poly(r);
  return x == 0.0f ? x : n & 2 ? -y : y;
}
template <bool quick = false>
PLAIT_HD float cos(float x) {
  int32_t n;
  const float r = reduce_half_pi<quick>(x, &n);
  const float y = n & 1 ? sin_poly(r) : cos_poly(r);
  return (n + 1) & 2 ? -y : y;
}
template <bool quick = false>
PLAIT_HD float tan(float x) {
  int32_t n;
  const float r = reduce_half_pi<quick>(x, &n), s = sin_poly(r), c = cos_poly(r);
  return x == 0.0f ? x : n & 1 ? -c / s : s / c;
}
template <bool quick = false>
PLAIT_HD double sin(double x) {
  return ::sin(x);
}
template <bool quick = false>
PLAIT_HD double cos(double x) {
  return ::cos(x);
}
template <bool quick = false>
PLAIT_HD double tan(double x) {
  return ::tan(x);
}

constexpr float kHalfPiHi = 1.57079637f, kHalfPiLo = -4.37113900e-8f;
constexpr float kPiHi = 3.14159274f, kPiLo = -8.74227801e-8f;

PLAIT_HD float atan_unit(float t) {  // |t| <= 1
  const float z = t * t;
  float q = -0.001771810499f;
  q = fused(q, z, 0.01081847672f);
  q = fused(q, z, -0.031002051f);
  q = fused(q, z, 0.0577852159f);
  q = fused(q, z, -0.08393679365f);
  q = fused(q, z, 0.1094897289f);
  q = fused(q, z, -0.1426366079f);
  q = fused(q, z, 0.1999849793f);
  q = fused(q, z, -0.3333329762f);
  return fused(t * z, q, t);
}
PLAIT_HD float atan(float x) {
  const float a = abs(x), p = atan_unit(a > 1.0f ? 1.0f / a : a);
  return copysign(a > 1.0f ? (kHalfPiHi - p) + kHalfPiLo : p, x);
}
PLAIT_HD float atan2(float y, float x) {
  const float ay = abs(y), ax = abs(x), high = ay > ax ? ay : ax, low = ay > ax ? ax : ay;
  float t = low / high;
  t = high == 0.0f ? 0.0f : low == kInf ? 1.0f : t;
  float r = atan_unit(t);
  r = ay > ax ? (kHalfPiHi - r) + kHalfPiLo : r;
  r = bits(x) >> 31 ? (kPiHi - r) + kPiLo : r;
  return x != x || y != y ? x + y : copysign(r, y);
}
// asin of s, where z = s^2 <= 1/4
PLAIT_HD float asin_poly(float s, float z) {
  float q = 0.04223096095f;
  q = fused(q, z, 0.02414071542f);
  q = fused(q, z, 0.0454784068f);
  q = fused(q, z, 0.0749523207f);
  q = fused(q, z, 0.1666675415f);
  return fused(s * z, q, s);
}
PLAIT_HD float asin(float x) {
  const float a = abs(x);
  const bool big = a > 0.5f;
  const float z = big ? 0.5f * (1.0f - a) : a * a, s = big ? sqrt(z) : a;
  const float p = asin_poly(s, z);
  return copysign(big ? kHalfPiHi - (2.0f * p - kHalfPiLo) : p, x);
}
PLAIT_HD float acos(float x) {
  const float a = abs(x);
  const bool big = a > 0.5f;
  const float z = big ? 0.5f * (1.0f - a) : a * a, s = big ? sqrt(z) : a;
  const float p = asin_poly(s, z);
  const float outer = x < 0.0f ? kPiHi - (2.0f * p - kPiLo) : 2.0f * p;
  const float inner = kHalfPiHi - (copysign(p, x) - kHalfPiLo);
  return big ? outer : inner;
}
PLAIT_HD double atan(double x) { return ::atan(x); }
PLAIT_HD double atan2(double y, double x) { return ::atan2(y, x); }
PLAIT_HD double asin(double x) { return ::asin(x); }
PLAIT_HD double acos(double x) { return ::acos(x); }

// Powers.

// 2^(y log2|x|) in float64, where the product keeps enough bits for a float32 result. Sums are
// trees, which have fewer steps after one another.
PLAIT_HD float pow_magnitude(float a, float y) {
  float k;
  const float f = split_exponent(a, &k);
  const double s = double(f) / (2.0 + double(f)), z = s * s;
  const double low = fused(0.5770835713782876, z, 0.9617966734252679);
  const double q = fused(fused(0.3407186749742274, z, 0.41167342489650205), z * z, low);
  double v = double(y) * fused(s * z, q, fused(s, 2.885390081790006, double(k)));
  // by its bits, as compilers would compute all that follows for both outcomes of a comparison
  const uint64_t size = bits(v) & 0x7fffffffffffffffu, most = 0x4064000000000000u;  // 160
  v = copysign(from_bits(size < most ? size : most), v);
  const double t = v + 6755399441055744.0, r = v - (t - 6755399441055744.0), w = r * r;
  const double high = fused(0.0013400428177439477, r, 0.009618056678525198);
  double p = fused(0.0001546144469698307, w, high);
  p = fused(p, w, fused(0.05550327226670787, r, 0.24022650922288832));
  p = fused(p, w, fused(0.6931472067028323, r, 1.0));
  return float(p * from_bits((bits(t) << 52) + (uint64_t(1023) << 52)));
}

PLAIT_HD float pow(float x, float y) {
  const float a = abs(x);
  const float b = abs(y), t = b + 8388608.0f;  // its low bits have the nearest integer of a small b
  const bool large = b >= 8388608.0f;  // those of b have it: all larger float32 numbers are whole
  const bool even = b >= 16777216.0f, integral = large | (t - 8388608.0f == b);
  const uint32_t odd = even | !integral ? 0 : (large ? bits(b) : bits(t)) << 31;
  const bool up = (a > 1.0f) == (y > 0.0f);  // outside of the range |x|^y is infinity or 0
  const float magnitude = pow_magnitude(a, y), edge = up ? kInf : 0.0f;
  float r = (a == 0.0f) | (a == kInf) ? edge : magnitude;
  r = a == 1.0f ? 1.0f : r;
  r = from_bits(bits(r) ^ (odd & bits(x)));
  r = (x < 0.0f) & !integral & (a != kInf) ? kNan : r;
  r = (x != x) | (y != y) ? x + y : r;
  return (x == 1.0f) | (y == 0.0f) ? 1.0f : r;
}
PLAIT_HD double pow(double x, double y) { return y == 2.0 ? x * x : ::pow(x, y); }

// `quick` is for |x / y| < 2^28 and finite y: the quotient in float64 is rounded up by 1 at most,
// and the product with it is exact.
template <bool quick = false>
PLAIT_HD float fmod(float x, float y) {
  if constexpr (!quick) return ::fmodf(x, y);
  const double a = abs(double(x)), b = abs(double(y));
  const double rest = a - __builtin_trunc(a / b) * b;
  return copysign(float(rest < 0.0 ? rest + b : rest), x);
}
template <bool quick = false>
PLAIT_HD double fmod(double x, double y) {
  return ::fmod(x, y);
}
// In float64 neither the squares nor their sum leave the range.
PLAIT_HD float hypot(float x, float y) {
  const float r = float(sqrt(double(x) * double(x) + double(y) * double(y)));
  return abs(x) == kInf || abs(y) == kInf ? kInf : r;
}
PLAIT_HD double hypot(double x, double y) { return ::hypot(x, y); }

template <class T>
PLAIT_HD T floor(T x) {
  if constexpr (sizeof(T) == 4) {
    return __builtin_floorf(x);
  } else {
    return __builtin_floor(x);
  }
}
template <class T>
PLAIT_HD T trunc(T x) {
  if constexpr (sizeof(T) == 4) {
    return __builtin_truncf(x);
  } else {
    return __builtin_trunc(x);
  }
}

// log(1 + t) for 0 <= t <= 1, without the cases of the general function: 2 atanh(t / (2 + t))
PLAIT_HD float log1p_unit(float t) {
  const float y = (t + t) / (2.0f + t), z = y * y;
  float q = 0.0005471119075f;
  q = fused(q, z, 0.002187641337f);
  q = fused(q, z, 0.01250672807f);
  q = fused(q, z, 0.08333301544f);
  return fused(y * z, q, y);
}
PLAIT_HD double log1p_unit(double t) { return ::log1p(t); }

}  // namespace plait::scalar::math

#include "pointwise/complex.h"
