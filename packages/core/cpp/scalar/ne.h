// a differs from b
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD bool ne(T a, T b) {
  return a != b;
}

}  // namespace plait::scalar
