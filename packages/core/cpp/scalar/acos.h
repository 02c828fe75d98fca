// the inverse cosine
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T acos(T x) {
  return math::acos(x);
}

}  // namespace plait::scalar
