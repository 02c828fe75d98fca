// Powers and roots. Powers of integers wrap around.
#pragma once
#include "pointwise/math.h"

namespace plait::scalar {

// x^2
template <class T>
PLAIT_HD T square(T x) {
  using W = math::wide<T>;
  return T(W(x) * W(x));
}
PLAIT_FEW_STEPS(square)

// the square root
PLAIT_MATH_UNARY(sqrt)
PLAIT_FEW_STEPS(sqrt)

// 1 / sqrt(x)
template <class T>
PLAIT_HD T rsqrt(T x) {
  return T(1) / math::sqrt(x);
}
PLAIT_FEW_STEPS(rsqrt)

// 1 / x
template <class T>
PLAIT_HD T reciprocal(T x) {
  return T(1) / x;
}
PLAIT_FEW_STEPS(reciprocal)

template <class T>
void pow(math::OfArrays<T>);

// a^b; of integers it wraps around, and a negative power is 0 unless |a| is 1
template <class T>
PLAIT_HD T pow(T a, T b) {
  if constexpr (math::is_floating<T> || math::is_complex<T>) {
    return math::pow(a, b);
  } else {
    if constexpr (math::is_signed<T>) {
      if (b < T(0)) return a == T(1) ? T(1) : a == T(-1) ? (b & 1 ? T(-1) : T(1)) : T(0);
    }
    using W = math::wide<T>;
    W power = W(1), base = W(a);
    for (W n = W(b); n != 0; n >>= 1) {
      if (n & 1) power *= base;
      base *= base;
    }
    return T(power);
  }
}

}  // namespace plait::scalar
