// the inverse sine
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T asin(T x) {
  return math::asin(x);
}

}  // namespace plait::scalar
