// Losses of one element of a pair, and their derivatives.
#pragma once
#include "pointwise/math.h"

namespace plait::scalar {

// x limited to [-delta, delta]; NaN stays NaN
template <class T>
PLAIT_HD T huber_limited(T x, T delta) {
  const T y = x < -delta ? -delta : x;
  return y > delta ? delta : y;
}

// d^2 / 2 where d = |input - target| is at most delta, delta (d - delta / 2) elsewhere
template <class T>
PLAIT_HD T huber_elements(T input, T target, T delta) {
  const T d = input - target, m = huber_limited(d, delta);
  return m * (d - T(0.5) * m);
}
PLAIT_FEW_STEPS(huber_elements)

// grad times input - target limited to [-delta, delta]
template <class T>
PLAIT_HD T huber_backward(T grad, T input, T target, T delta) {
  return grad * huber_limited(input - target, delta);
}
PLAIT_FEW_STEPS(huber_backward)

}  // namespace plait::scalar
