// Sums with a product or a quotient.
#pragma once
#include "pointwise/math.h"

namespace plait::scalar {

// a + value b c
template <class T>
PLAIT_HD T addcmul(T a, T b, T c, T value) {
  using W = math::wide<T>;
  return T(W(a) + W(value) * W(b) * W(c));
}
PLAIT_FEW_STEPS(addcmul)

// a + value b / c
template <class T>
PLAIT_HD T addcdiv(T a, T b, T c, T value) {
  return a + value * (b / c);
}
PLAIT_FEW_STEPS(addcdiv)

// a + t (b - a), exact at both ends
template <class T>
PLAIT_HD T lerp(T a, T b, T t) {
  return math::abs(t) < typename math::RealOf<T>::type(0.5) ? a + t * (b - a)
                                                            : b - (b - a) * (T(1) - t);
}
PLAIT_FEW_STEPS(lerp)

}  // namespace plait::scalar
