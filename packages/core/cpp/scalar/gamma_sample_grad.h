// how a sample of the gamma distribution moves with its shape
#pragma once
#include "scalar/special/sample_gradients.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T gamma_sample_grad(T a, T x) {
  return T(math::gamma_gradient(double(a), double(x), math::kSmallTerm<T>));
}

}  // namespace plait::scalar
