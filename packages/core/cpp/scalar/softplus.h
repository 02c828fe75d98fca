// log(1 + e^(beta x)) / beta; x itself above the threshold
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T softplus(T x, T beta, T threshold) {
  return x * beta > threshold ? x : math::softplus(x * beta) / beta;
}

}  // namespace plait::scalar
