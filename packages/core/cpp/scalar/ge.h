// a is at least b
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD bool ge(T a, T b) {
  return a >= b;
}

}  // namespace plait::scalar
