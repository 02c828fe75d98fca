// Sums, differences, products and powers of two numbers. Integers wrap around.
#pragma once
#include "pointwise/math.h"

namespace plait::scalar {

// a + alpha b
template <class T>
PLAIT_HD T add(T a, T b, T alpha) {
  using W = math::wide<T>;
  return T(W(a) + W(alpha) * W(b));
}

// a - alpha b
template <class T>
PLAIT_HD T sub(T a, T b, T alpha) {
  using W = math::wide<T>;
  return T(W(a) - W(alpha) * W(b));
}

// a b
template <class T>
PLAIT_HD T mul(T a, T b) {
  using W = math::wide<T>;
  return T(W(a) * W(b));
}

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

// the angle of the point (b, a)
template <class T>
PLAIT_HD T atan2(T a, T b) {
  return math::atan2(a, b);
}

// sqrt(a^2 + b^2) without overflow
template <class T>
PLAIT_HD T hypot(T a, T b) {
  return math::hypot(a, b);
}

// |a| with the sign of b
template <class T>
PLAIT_HD T copysign(T a, T b) {
  return math::copysign(a, b);
}

}  // namespace plait::scalar
