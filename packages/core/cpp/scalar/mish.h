// x tanh(log(1 + e^x))
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T mish(T x) {
  return x * math::tanh(math::softplus(x));
}

}  // namespace plait::scalar
