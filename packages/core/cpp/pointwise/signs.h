// Tests of signs, the step function, and divisors of integers.
#pragma once
#include "pointwise/math.h"

namespace plait::scalar {

// whether the sign is set, as it is of -0 and of some NaN
template <class T>
PLAIT_HD bool signbit(T x) {
  if constexpr (math::is_floating<T>) {
    return math::bits(x) >> (sizeof(T) * 8 - 1);
  } else {
    return x < T(0);
  }
}

// x is +infinity
template <class T>
PLAIT_HD bool isposinf(T x) {
  if constexpr (math::is_floating<T>) {
    return x == T(math::kInf);
  } else {
    return (void)x, false;
  }
}

// x is -infinity
template <class T>
PLAIT_HD bool isneginf(T x) {
  if constexpr (math::is_floating<T>) {
    return x == -T(math::kInf);
  } else {
    return (void)x, false;
  }
}

// x has no imaginary part
template <class T>
PLAIT_HD bool isreal(T x) {
  if constexpr (math::is_complex<T>) {
    return x.im == typename math::RealOf<T>::type(0);
  } else {
    return (void)x, true;
  }
}

// 0 below 0, 1 above, else `value`
template <class T>
PLAIT_HD T heaviside(T x, T value) {
  return x == T(0) ? value : T(x > T(0));
}

// the number after a on the way to b
template <class T>
PLAIT_HD T nextafter_elements(T a, T b) {
  if constexpr (sizeof(T) == 4) {
    return __builtin_nextafterf(a, b);
  } else {
    return __builtin_nextafter(a, b);
  }
}

// x, with other numbers in the place of NaN, infinity and -infinity
template <class T>
PLAIT_HD T replace_nonfinite(T x, T nan, T posinf, T neginf) {
  if constexpr (math::is_floating<T>) {
    const T y = x == T(math::kInf) ? posinf : x == -T(math::kInf) ? neginf : x;
    return x != x ? nan : y;
  } else {
    return (void)nan, (void)posinf, (void)neginf, x;
  }
}

// the greatest common divisor, not negative
template <class T>
PLAIT_HD T gcd(T a, T b) {
  using W = math::wide<T>;
  W x = a < T(0) ? W(0) - W(a) : W(a), y = b < T(0) ? W(0) - W(b) : W(b);
  while (y != 0) {
    const W rest = x % y;
    x = y;
    y = rest;
  }
  return T(x);
}

// the least common multiple, not negative; 0 if one is 0
template <class T>
PLAIT_HD T lcm(T a, T b) {
  using W = math::wide<T>;
  const W x = a < T(0) ? W(0) - W(a) : W(a), y = b < T(0) ? W(0) - W(b) : W(b);
  W p = x, q = y;
  while (q != 0) {
    const W rest = p % q;
    p = q;
    q = rest;
  }
  const T r = p == 0 ? T(0) : T(x / p * y);
  return r < T(0) ? T(W(0) - W(r)) : r;
}

}  // namespace plait::scalar
