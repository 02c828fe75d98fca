// log |gamma(x)|
#pragma once
#include "scalar/special/gamma.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T lgamma(T x) {
  return T(math::lgamma(double(x)));
}

}  // namespace plait::scalar
