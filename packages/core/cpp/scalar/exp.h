// e^x
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T exp(T x) {
  return math::exp(x);
}

}  // namespace plait::scalar
