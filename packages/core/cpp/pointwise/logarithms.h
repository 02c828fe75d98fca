// Logarithms, logarithms of sums, and products with logarithms.
#pragma once
#include "pointwise/math.h"

namespace plait::scalar {

// the natural logarithm
PLAIT_MATH_UNARY(log)

// the logarithm to base 2
PLAIT_MATH_UNARY(log2)

// the logarithm to base 10
PLAIT_MATH_UNARY(log10)

// log(1 + x), exact near 0
PLAIT_MATH_UNARY(log1p)

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
    const T r = high + math::log1p_unit(math::exp_negative(-d));
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

}  // namespace plait::scalar
