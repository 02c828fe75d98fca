// exp(x) K0(x)
#pragma once
#include "scalar/special/bessel.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T special_scaled_modified_bessel_k0(T x) {
  return T(math::k0e(double(x)));
}

}  // namespace plait::scalar
