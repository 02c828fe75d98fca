// a 2^b; 0 for amounts outside the width
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T bitwise_left_shift(T a, T b) {
  using W = math::wide<T>;
  const bool inside = b >= T(0) && uint64_t(b) < sizeof(T) * 8;
  return inside ? T(W(a) << (W(b) & W(sizeof(W) * 8 - 1))) : T(0);
}

}  // namespace plait::scalar
