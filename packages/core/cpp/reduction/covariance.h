// Weights of observations.
#pragma once
#include "pointwise/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T weights_at_least_zero(T weight) {
  return weight;
}

}  // namespace plait::scalar
