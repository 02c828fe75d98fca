// the normal distribution's cumulative function
#pragma once
#include "scalar/special/erf.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T special_ndtr(T x) {
  return T(math::ndtr(double(x)));
}

}  // namespace plait::scalar
