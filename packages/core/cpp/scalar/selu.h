// scaled elu with the constants of Klambauer et al. 2017
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T selu(T x) {
  const T scale = T(1.0507009873554805), alpha = T(1.6732632423543772);
  return scale * (x > T(0) ? x : alpha * math::expm1(x));
}

}  // namespace plait::scalar
