// -(target * log(input) + (1 - target) * log(1 - input)), with logarithms of at least -100
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T bce_elements(T input, T target) {
  const T yes = math::log(input), no = math::log1p(-input), least = T(-100);
  return (target - T(1)) * (no < least ? least : no) - target * (yes < least ? least : yes);
}

}  // namespace plait::scalar
