// x sigmoid(x)
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T silu(T x) {
  return x / (T(1) + math::exp(-x));
}

}  // namespace plait::scalar
