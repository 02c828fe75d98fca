// log(x / (1 - x))
#pragma once
#include "scalar/math.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T log_odds(T x) {
  return math::log(x / (T(1) - x));
}

}  // namespace plait::scalar
