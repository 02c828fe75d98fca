// a log(b), 0 where a is 0 unless b is NaN
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T xlogy(T a, T b) {
  return b != b ? b : a == T(0) ? T(0) : a * math::log(b);
}

}  // namespace plait::scalar
