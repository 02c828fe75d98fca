// a / 2^b rounded down; outside the width only the sign is left
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T bitwise_right_shift(T a, T b) {
  const bool inside = b >= T(0) && uint64_t(b) < sizeof(T) * 8;
  const T outside = a < T(0) ? T(-1) : T(0);
  return inside ? T(a >> (int(b) & int(sizeof(T) * 8 - 1))) : outside;
}

}  // namespace plait::scalar
