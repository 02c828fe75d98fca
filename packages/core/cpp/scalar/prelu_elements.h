// x, times `weight` below 0
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T prelu_elements(T x, T weight) {
  return x > T(0) ? x : weight * x;
}

}  // namespace plait::scalar
