// Inverse hyperbolic functions and exp2: float32 in polynomials and logarithms that vectorise,
// float64 from the C library.
#pragma once
#include "scalar/math.h"

namespace plait::scalar::math {

constexpr float kLn2 = 0.693147180559945f;

PLAIT_HD float asinh(float x) {
  const float a = abs(x), b = a < 1e9f ? a : 1e9f;
  const float near = log1p(b + b * b / (1.0f + sqrt(b * b + 1.0f)));
  return copysign(a < 1e9f ? near : log(a) + kLn2, x);
}
PLAIT_HD float acosh(float x) {
  const float t = (x < 1e9f ? x : 1e9f) - 1.0f;
  const float near = log1p(t + sqrt(t * (t + 2.0f)));
  const float r = x < 1e9f ? near : log(x) + kLn2;
  return x < 1.0f ? kNan : r;
}
PLAIT_HD float atanh(float x) {
  const float a = abs(x);
  return copysign(0.5f * log1p(2.0f * a / (1.0f - a)), x);
}
PLAIT_HD double asinh(double x) { return ::asinh(x); }
PLAIT_HD double acosh(double x) { return ::acosh(x); }
PLAIT_HD double atanh(double x) { return ::atanh(x); }

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
