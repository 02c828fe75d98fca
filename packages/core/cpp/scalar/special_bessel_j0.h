// the Bessel function J0
#pragma once
#include "scalar/special/bessel.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T special_bessel_j0(T x) {
  return T(math::bessel_j0(double(x)));
}

}  // namespace plait::scalar
