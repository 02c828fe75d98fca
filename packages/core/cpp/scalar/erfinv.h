// the inverse of erf
#pragma once
#include "scalar/special/erf.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T erfinv(T x) {
  return T(math::erfinv(double(x)));
}

}  // namespace plait::scalar
