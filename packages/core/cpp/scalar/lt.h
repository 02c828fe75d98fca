// a is less than b
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD bool lt(T a, T b) {
  return a < b;
}

}  // namespace plait::scalar
