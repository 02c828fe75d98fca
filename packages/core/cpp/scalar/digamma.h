// the derivative of log gamma
#pragma once
#include "scalar/special/gamma.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T digamma(T x) {
  return T(math::digamma(double(x)));
}

}  // namespace plait::scalar
