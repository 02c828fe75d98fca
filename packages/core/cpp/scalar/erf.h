// the error function
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T erf(T x) {
  return math::erf(x);
}

}  // namespace plait::scalar
