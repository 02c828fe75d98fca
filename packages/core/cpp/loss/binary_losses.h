// Binary cross-entropy of one element, and its derivative.
#pragma once
#include "pointwise/math.h"

namespace plait::scalar {

// -(target * log(input) + (1 - target) * log(1 - input)), with logarithms of at least -100
template <class T>
PLAIT_HD T bce_elements(T input, T target) {
  const T yes = math::log(input), no = math::log1p(-input), least = T(-100);
  return (target - T(1)) * (no < least ? least : no) - target * (yes < least ? least : yes);
}

// grad * (input - target) / max(input * (1 - input), 1e-12)
template <class T>
PLAIT_HD T bce_backward(T grad, T input, T target) {
  const T spread = input * (T(1) - input), least = T(1e-12);
  return grad * (input - target) / (spread < least ? least : spread);
}

}  // namespace plait::scalar
