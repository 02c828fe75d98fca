// the logarithm to base 2
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T log2(T x) {
  return math::log2(x);
}

}  // namespace plait::scalar
