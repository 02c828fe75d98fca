// Powers of two, logarithms of sums, and products with logarithms.
#pragma once
#include "pointwise/math.h"

namespace plait::scalar::math {

// 2^n 2^r with |r| <= 1/2
PLAIT_HD float exp2(float x) {
  float y = x < -151.0f ? -151.0f : x;  // NaN passes both
  y = y > 128.0f ? 128.0f : y;
  const float t = y + kRound, k = t - kRound, r = y - k;
  const int32_t n = int32_t(bits(t) - bits(kRound)), half = n >> 1;
  float q = 0.0001545316294512069f;
  q = q * r + 0.0013390863364671234f;
  q = q * r + 0.009618082557277852f;
  q = q * r + 0.05550357114219078f;
  q = q * r + 0.24022650760568126f;
  q = q * r + 0.6931471880262288f;
  return (1.0f + r * q) * power_of_two(half) * power_of_two(n - half);
}
PLAIT_HD double exp2(double x) { return ::exp2(x); }

}  // namespace plait::scalar::math

namespace plait::scalar {

// 2^x
template <class T>
PLAIT_HD T exp2(T x) {
  if constexpr (math::is_complex<T>) {
    return math::exp(x * T(0.69314718055994531));
  } else {
    return math::exp2(x);
  }
}

// log(exp(a) + exp(b)) without overflow
template <class T>
PLAIT_HD T logaddexp(T a, T b) {
  if constexpr (math::is_complex<T>) {
    const bool up = a.re >= b.re;
    const T high = up ? a : b, low = up ? b : a;
    return high.re == typename math::RealOf<T>::type(-math::kInf)
               ? high
               : high + math::log1p(math::exp(low - high));
  } else {
    const T high = a > b ? a : b, d = math::abs(a - b);
    const T r = high + math::log1p(math::exp(-d));
    return a == b ? a + T(0.69314718055994531) : d != d ? a + b : r;
  }
}

// log2(2^a + 2^b) without overflow
template <class T>
PLAIT_HD T logaddexp2(T a, T b) {
  const T high = a > b ? a : b, d = math::abs(a - b);
  const T r = high + math::log1p(math::exp2(-d)) * T(1.44269504088896341);
  return a == b ? a + T(1) : d != d ? a + b : r;
}

// a log(b), 0 where a is 0 unless b is NaN
template <class T>
PLAIT_HD T xlogy(T a, T b) {
  return b != b ? b : a == T(0) ? T(0) : a * math::log(b);
}

// a log(1 + b), 0 where a is 0 unless b is NaN
template <class T>
PLAIT_HD T special_xlog1py(T a, T b) {
  return b != b ? b : a == T(0) ? T(0) : a * math::log1p(b);
}

// log(x / (1 - x))
template <class T>
PLAIT_HD T log_odds(T x) {
  return math::log(x / (T(1) - x));
}

// m with x = m 2^e and 1/2 <= |m| < 1
template <class T>
PLAIT_HD T frexp_mantissa(T x) {
  int e = 0;
  if constexpr (sizeof(T) == 4) {
    return __builtin_frexpf(x, &e);
  } else {
    return __builtin_frexp(x, &e);
  }
}

// e with x = m 2^e and 1/2 <= |m| < 1; 0 for 0, infinity and NaN
template <class T>
PLAIT_HD T frexp_exponent(T x) {
  int e = 0;
  if (!(math::abs(x) < T(math::kInf))) return T(0);
  if constexpr (sizeof(T) == 4) {
    (void)__builtin_frexpf(x, &e);
  } else {
    (void)__builtin_frexp(x, &e);
  }
  return T(e);
}

}  // namespace plait::scalar
