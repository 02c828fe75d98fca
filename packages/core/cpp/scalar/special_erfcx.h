// exp(x^2) erfc(x)
#pragma once
#include "scalar/special/erf.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T special_erfcx(T x) {
  return T(math::erfcx(double(x)));
}

}  // namespace plait::scalar
