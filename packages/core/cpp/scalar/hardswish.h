// x relu6(x + 3) / 6
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T hardswish(T x) {
  const T y = x + T(3);
  return x * (y < T(0) ? T(0) : y > T(6) ? T(6) : y) / T(6);
}

}  // namespace plait::scalar
