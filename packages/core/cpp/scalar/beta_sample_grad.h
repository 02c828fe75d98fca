// how a sample x of the beta distribution moves with its first parameter, divided by 1 - x
#pragma once
#include "scalar/special/sample_gradients.h"

namespace plait::scalar {

template <class T>
PLAIT_HD T beta_sample_grad(T x, T a, T b) {
  return T(math::beta_gradient(double(x), double(a), double(b), math::kSmallTerm<T>));
}

}  // namespace plait::scalar
