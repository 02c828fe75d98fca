// exp(x) K1(x)
#pragma once
#include "scalar/special/bessel.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T special_scaled_modified_bessel_k1(T x) {
  return T(math::k1e(double(x)));
}

}  // namespace plait::scalar
