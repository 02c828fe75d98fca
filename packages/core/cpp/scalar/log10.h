// the logarithm to base 10
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T log10(T x) {
  return math::log10(x);
}

}  // namespace plait::scalar
