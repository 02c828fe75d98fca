// log(sigmoid(x)) without overflow
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T log_sigmoid(T x) {
  return -math::softplus(-x);
}

}  // namespace plait::scalar
