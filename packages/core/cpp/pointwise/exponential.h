// Exponentials, logarithms, roots, and the functions made of them.
#pragma once
#include "pointwise/math.h"

namespace plait::scalar {

// e^x
template <class T>
PLAIT_HD T exp(T x) {
  return math::exp(x);
}

// e^x - 1, exact near 0
template <class T>
PLAIT_HD T expm1(T x) {
  return math::expm1(x);
}

// the natural logarithm
template <class T>
PLAIT_HD T log(T x) {
  return math::log(x);
}

// the logarithm to base 2
template <class T>
PLAIT_HD T log2(T x) {
  return math::log2(x);
}

// the logarithm to base 10
template <class T>
PLAIT_HD T log10(T x) {
  return math::log10(x);
}

// log(1 + x), exact near 0
template <class T>
PLAIT_HD T log1p(T x) {
  return math::log1p(x);
}

// the square root
template <class T>
PLAIT_HD T sqrt(T x) {
  return math::sqrt(x);
}

// 1 / sqrt(x)
template <class T>
PLAIT_HD T rsqrt(T x) {
  return T(1) / math::sqrt(x);
}

// 1 / x
template <class T>
PLAIT_HD T reciprocal(T x) {
  return T(1) / x;
}

// the error function
template <class T>
PLAIT_HD T erf(T x) {
  return math::erf(x);
}

// 1 - erf(x), exact in the tail
template <class T>
PLAIT_HD T erfc(T x) {
  return math::erfc(x);
}

// 1 / (1 + e^-x)
template <class T>
PLAIT_HD T sigmoid(T x) {
  return math::sigmoid(x);
}

// the hyperbolic tangent
template <class T>
PLAIT_HD T tanh(T x) {
  return math::tanh(x);
}

// x^2
template <class T>
PLAIT_HD T square(T x) {
  using W = math::wide<T>;
  return T(W(x) * W(x));
}

// the derivative of sigmoid, from its result: grad result (1 - result)
template <class T>
PLAIT_HD T sigmoid_backward(T grad, T result) {
  return grad * (T(1) - result) * result;
}

// the derivative of tanh, from its result: grad (1 - result^2)
template <class T>
PLAIT_HD T tanh_backward(T grad, T result) {
  return grad * (T(1) - result * result);
}

}  // namespace plait::scalar
