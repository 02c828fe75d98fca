// a log(1 + b), 0 where a is 0 unless b is NaN
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T special_xlog1py(T a, T b) {
  return b != b ? b : a == T(0) ? T(0) : a * math::log1p(b);
}

}  // namespace plait::scalar
