// the inverse of cosh, from 0 on
#pragma once
#include "scalar/special/hyperbolic.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T acosh(T x) {
  return math::acosh(x);
}

}  // namespace plait::scalar
