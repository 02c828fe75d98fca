// the least common multiple, not negative; 0 if one is 0
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

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
