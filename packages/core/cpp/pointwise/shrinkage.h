// Functions that set numbers below a bound to a value, or move them towards 0.
#pragma once
#include "pointwise/math.h"

namespace plait::scalar {

// x above the bound, else `value`
template <class T>
PLAIT_HD T threshold(T x, T bound, T value) {
  return x <= bound ? value : x;
}
PLAIT_FEW_STEPS(threshold)

// g where x is above the bound or NaN, 0 elsewhere
template <class T>
PLAIT_HD T threshold_backward(T g, T x, T bound) {
  return x <= bound ? T(0) : g;
}
PLAIT_FEW_STEPS(threshold_backward)

// x, or 0 within [-lambd, lambd]
template <class T>
PLAIT_HD T hardshrink(T x, T lambd) {
  return (x >= -lambd) & (x <= lambd) ? T(0) : x;
}
PLAIT_FEW_STEPS(hardshrink)

// x moved towards 0 by lambd, 0 within
template <class T>
PLAIT_HD T softshrink(T x, T lambd) {
  return x > lambd ? x - lambd : x < -lambd ? x + lambd : x != x ? x : T(0);
}
PLAIT_FEW_STEPS(softshrink)

// the derivative of both: g, or 0 within [-lambd, lambd]
template <class T>
PLAIT_HD T shrink_backward(T g, T x, T lambd) {
  return (x >= -lambd) & (x <= lambd) ? T(0) : g;
}
PLAIT_FEW_STEPS(shrink_backward)

// x, times `weight` below 0
template <class T>
PLAIT_HD T prelu_elements(T x, T weight) {
  return x > T(0) ? x : weight * x;
}
PLAIT_FEW_STEPS(prelu_elements)

}  // namespace plait::scalar
