// x - tanh(x)
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T tanhshrink(T x) {
  return x - math::tanh(x);
}

}  // namespace plait::scalar
