// grad * (input - target) / max(input * (1 - input), 1e-12)
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T bce_backward(T grad, T input, T target) {
  const T spread = input * (T(1) - input), least = T(1e-12);
  return grad * (input - target) / (spread < least ? least : spread);
}

}  // namespace plait::scalar
