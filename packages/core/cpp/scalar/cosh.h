// the hyperbolic cosine
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T cosh(T x) {
  return math::cosh(x);
}

}  // namespace plait::scalar
