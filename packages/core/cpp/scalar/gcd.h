// the greatest common divisor, not negative
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

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

}  // namespace plait::scalar
