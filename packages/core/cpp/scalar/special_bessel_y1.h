// the Bessel function Y1
#pragma once
#include "scalar/special/bessel.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T special_bessel_y1(T x) {
  return T(math::bessel_y1(double(x)));
}

}  // namespace plait::scalar
