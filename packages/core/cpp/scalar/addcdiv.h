// a + value b / c
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T addcdiv(T a, T b, T c, T value) {
  return a + value * (b / c);
}

}  // namespace plait::scalar
