// the n-th derivative of digamma
#pragma once
#include "scalar/special/gamma.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T polygamma_elements(T x, T n) {
  return T(math::polygamma(double(n), double(x)));
}

}  // namespace plait::scalar
