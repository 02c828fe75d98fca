// the Bessel function Y0
#pragma once
#include "scalar/special/bessel.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T special_bessel_y0(T x) {
  return T(math::bessel_y0(double(x)));
}

}  // namespace plait::scalar
