// 1 / (1 + e^-x)
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T sigmoid(T x) {
  return math::sigmoid(x);
}

}  // namespace plait::scalar
