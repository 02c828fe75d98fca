// a / b, of floating dtypes
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T div(T a, T b) {
  return a / b;
}

}  // namespace plait::scalar
