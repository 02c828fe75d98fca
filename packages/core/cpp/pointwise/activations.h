// Activation functions, and the derivatives that have kernels of their own.
#pragma once
#include "pointwise/math.h"

namespace plait::scalar {

// max(x, 0); NaN stays NaN
template <class T>
PLAIT_HD T relu(T x) {
  return x > T(0) || x != x ? x : T(0);
}

// g where y = relu(x) is not 0
template <class T>
PLAIT_HD T relu_backward(T g, T y) {
  return y <= T(0) ? T(0) : g;
}

// x clamped to [0, 6]
template <class T>
PLAIT_HD T relu6(T x) {
  return x < T(0) ? T(0) : x > T(6) ? T(6) : x;
}

// x where positive, slope * x elsewhere
template <class T>
PLAIT_HD T leaky_relu(T x, T slope) {
  return x > T(0) ? x : x * slope;
}

// g where x is positive, slope * g elsewhere
template <class T>
PLAIT_HD T leaky_relu_backward(T g, T x, T slope) {
  return x > T(0) ? g : g * slope;
}

// x where positive, alpha (e^x - 1) elsewhere
template <class T>
PLAIT_HD T elu(T x, T alpha) {
  return x > T(0) ? x : alpha * math::expm1(x);
}

// g where x is positive, alpha e^x g elsewhere
template <class T>
PLAIT_HD T elu_backward(T g, T x, T alpha) {
  return x > T(0) ? g : g * (alpha * math::exp(x));
}

// scaled elu with the constants of Klambauer et al. 2017
template <class T>
PLAIT_HD T selu(T x) {
  const T scale = T(1.0507009873554805), alpha = T(1.6732632423543772);
  return scale * (x > T(0) ? x : alpha * math::expm1(x));
}

// x where positive, alpha (e^(x / alpha) - 1) elsewhere
template <class T>
PLAIT_HD T celu(T x, T alpha) {
  return x > T(0) ? x : alpha * math::expm1(x / alpha);
}

// 1 / (1 + e^-x)
template <class T>
PLAIT_HD T sigmoid(T x) {
  return math::sigmoid(x);
}

// the derivative of sigmoid, from its result: grad result (1 - result)
template <class T>
PLAIT_HD T sigmoid_backward(T grad, T result) {
  return grad * (T(1) - result) * result;
}

// log(sigmoid(x)) without overflow
template <class T>
PLAIT_HD T log_sigmoid(T x) {
  return -math::softplus(-x);
}

// x sigmoid(x)
template <class T>
PLAIT_HD T silu(T x) {
  return x / (T(1) + math::exp(-x));
}

// g times the derivative of x sigmoid(x)
template <class T>
PLAIT_HD T silu_backward(T g, T x) {
  const T s = math::sigmoid(x);
  return g * (s * (T(1) + x * (T(1) - s)));
}

// x tanh(log(1 + e^x))
template <class T>
PLAIT_HD T mish(T x) {
  return x * math::tanh(math::softplus(x));
}

// log(1 + e^(beta x)) / beta; x itself above the threshold
template <class T>
PLAIT_HD T softplus(T x, T beta, T threshold) {
  return x * beta > threshold ? x : math::softplus(x * beta) / beta;
}

// x / (1 + |x|)
template <class T>
PLAIT_HD T softsign(T x) {
  return x / T(typename math::RealOf<T>::type(1) + math::abs(x));
}

// x - tanh(x)
template <class T>
PLAIT_HD T tanhshrink(T x) {
  return x - math::tanh(x);
}

// x clamped to [low, high]
template <class T>
PLAIT_HD T hardtanh(T x, T low, T high) {
  return x < low ? low : x > high ? high : x;
}

// relu6(x + 3) / 6
template <class T>
PLAIT_HD T hardsigmoid(T x) {
  const T y = x + T(3);
  return (y < T(0) ? T(0) : y > T(6) ? T(6) : y) / T(6);
}

// x relu6(x + 3) / 6
template <class T>
PLAIT_HD T hardswish(T x) {
  const T y = x + T(3);
  return x * (y < T(0) ? T(0) : y > T(6) ? T(6) : y) / T(6);
}

}  // namespace plait::scalar
