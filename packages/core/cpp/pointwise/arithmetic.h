// Sums, differences and products, and divisors of integers. Integers wrap around.
#pragma once
#include "pointwise/math.h"

namespace plait::scalar {

// -x
template <class T>
PLAIT_HD T neg(T x) {
  using W = math::wide<T>;
  return T(-W(x));
}
PLAIT_FEW_STEPS(neg)

// a + alpha b
template <class T>
PLAIT_HD T add(T a, T b, T alpha) {
  using W = math::wide<T>;
  return T(W(a) + W(alpha) * W(b));
}
PLAIT_FEW_STEPS(add)

// a - alpha b
template <class T>
PLAIT_HD T sub(T a, T b, T alpha) {
  using W = math::wide<T>;
  return T(W(a) - W(alpha) * W(b));
}
PLAIT_FEW_STEPS(sub)

// a b
template <class T>
PLAIT_HD T mul(T a, T b) {
  using W = math::wide<T>;
  return T(W(a) * W(b));
}
PLAIT_FEW_STEPS(mul)

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
