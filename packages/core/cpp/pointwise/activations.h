// Activation functions, and the derivatives that have kernels of their own.
#pragma once
#include "pointwise/math.h"

namespace plait::scalar {

// max(x, 0); NaN stays NaN
template <class T>
PLAIT_HD T relu(T x) {
  return x <= T(0) ? T(0) : x;
}
PLAIT_FEW_STEPS(relu)

// g where y = relu(x) is not 0
template <class T>
PLAIT_HD T relu_backward(T g, T y) {
  return y <= T(0) ? T(0) : g;
}
PLAIT_FEW_STEPS(relu_backward)

// x clamped to [0, 6]
template <class T>
PLAIT_HD T relu6(T x) {
  const T y = x < T(0) ? T(0) : x;
  return y > T(6) ? T(6) : y;
}
PLAIT_FEW_STEPS(relu6)

// x where positive, slope * x elsewhere
template <class T>
PLAIT_HD T leaky_relu(T x, T slope) {
  return x > T(0) ? x : x * slope;
}
PLAIT_FEW_STEPS(leaky_relu)

// g where x is positive, slope * g elsewhere
template <class T>
PLAIT_HD T leaky_relu_backward(T g, T x, T slope) {
  return x > T(0) ? g : g * slope;
}
PLAIT_FEW_STEPS(leaky_relu_backward)

// x where positive, alpha (e^x - 1) elsewhere
template <class T>
PLAIT_HD T elu(T x, T alpha) {
  const T below = alpha * math::expm1(x);  // of all elements, so that loops vectorise
  return x > T(0) ? x : below;
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
  const T below = alpha * math::expm1(x);
  return scale * (x > T(0) ? x : below);
}

// the derivative of selu
template <class T>
PLAIT_HD T selu_backward(T g, T x) {
  const T scale = T(1.0507009873554805), both = T(1.0507009873554805 * 1.6732632423543772);
  return g * (x > T(0) ? scale : both * math::exp(x));
}

// x where positive, alpha (e^(x / alpha) - 1) elsewhere
template <class T>
PLAIT_HD T celu(T x, T alpha) {
  return x > T(0) ? x : alpha * math::expm1(x / alpha);
}

// g where x is positive, e^(x / alpha) g elsewhere
template <class T>
PLAIT_HD T celu_backward(T g, T x, T alpha) {
  return x > T(0) ? g : g * math::exp(x / alpha);
}

// 1 / (1 + e^-x)
PLAIT_MATH_UNARY(sigmoid)

// the derivative of sigmoid, from its result: grad result (1 - result)
template <class T>
PLAIT_HD T sigmoid_backward(T grad, T result) {
  return grad * (T(1) - result) * result;
}
PLAIT_FEW_STEPS(sigmoid_backward)

// log(sigmoid(x)) without overflow: min(x, 0) - log(1 + e^-|x|)
template <class T>
PLAIT_HD T log_sigmoid(T x) {
  const T negative = x < T(0) ? x : x != x ? x : T(0);
  return negative - math::log1p_unit(math::exp_negative(-math::abs(x)));
}

// g sigmoid(-x)
template <class T>
PLAIT_HD T log_sigmoid_backward(T g, T x) {
  return g * math::sigmoid(-x);
}

// x sigmoid(x)
template <class T>
PLAIT_HD T silu(T x) {
  if constexpr (math::is_complex<T>) {
    return x / (T(1) + math::exp(-x));
  } else {
    const T e = math::exp_minus_size(x);
    return (x < T(0) ? x * e : x) / (T(1) + e);
  }
}

// g times the derivative of x sigmoid(x)
template <class T>
PLAIT_HD T silu_backward(T g, T x) {
  const T s = math::sigmoid(x);
  return g * (s * (T(1) + x * (T(1) - s)));
}

// tanh(log(1 + n)) = w / (w + 2) with n = e^x and w = n (n + 2), which is 1 from x = 20 on

// x tanh(log(1 + e^x))
template <class T>
PLAIT_HD T mish(T x) {
  const T n = math::exp(x > T(20) ? T(20) : x), w = n * (n + T(2));
  return x * (w / (w + T(2)));
}

// g times the derivative of mish: w / d + 4 x n (n + 1) / d^2 with d = w + 2
template <class T>
PLAIT_HD T mish_backward(T g, T x) {
  const bool large = x > T(20);
  const T n = math::exp(large ? T(20) : x), w = n * (n + T(2)), d = w + T(2);
  const T rest = large ? T(0) : T(4) * n * (n + T(1));
  return g * ((w * d + x * rest) / (d * d));
}

// log(1 + e^(beta x)) / beta; x itself above the threshold
template <class T>
PLAIT_HD T softplus(T x, T beta, T threshold) {
  const T y = x * beta, positive = y > T(0) ? y : y != y ? y : T(0);
  return y > threshold ? x
                       : (positive + math::log1p_unit(math::exp_negative(-math::abs(y)))) / beta;
}

// g sigmoid(beta x); g itself above the threshold
template <class T>
PLAIT_HD T softplus_backward(T g, T x, T beta, T threshold) {
  return x * beta > threshold ? g : g * math::sigmoid(x * beta);
}

// x / (1 + |x|)
template <class T>
PLAIT_HD T softsign(T x) {
  return x / T(typename math::RealOf<T>::type(1) + math::abs(x));
}
PLAIT_FEW_STEPS(softsign)

// g / (1 + |x|)^2, and nan where softsign is: at infinity
template <class T>
PLAIT_HD T softsign_backward(T g, T x) {
  const T size = T(1) + math::abs(x);
  return g / size / size + (x - x);  // the square may overflow
}
PLAIT_FEW_STEPS(softsign_backward)

// x - tanh(x)
template <class T>
PLAIT_HD T tanhshrink(T x) {
  return x - math::tanh(x);
}

// g tanh(x)^2
template <class T>
PLAIT_HD T tanhshrink_backward(T g, T x) {
  const T t = math::tanh(x);
  return g * t * t;
}

// x clamped to [low, high], in two steps that are an instruction each; NaN stays NaN
template <class T>
PLAIT_HD T hardtanh(T x, T low, T high) {
  const T y = x < low ? low : x;
  return y > high ? high : y;
}
PLAIT_FEW_STEPS(hardtanh)

// g between the bounds, 0 at them and outside; NaN passes
template <class T>
PLAIT_HD T hardtanh_backward(T g, T x, T low, T high) {
  return (x <= low) | (x >= high) ? T(0) : g;
}
PLAIT_FEW_STEPS(hardtanh_backward)

// relu6(x + 3) / 6
template <class T>
PLAIT_HD T hardsigmoid(T x) {
  const T y = x + T(3);
  return (y < T(0) ? T(0) : y > T(6) ? T(6) : y) / T(6);
}
PLAIT_FEW_STEPS(hardsigmoid)

// g / 6 between -3 and 3, 0 at them and outside, and at NaN
template <class T>
PLAIT_HD T hardsigmoid_backward(T g, T x) {
  return (x > T(-3)) & (x < T(3)) ? g / T(6) : T(0);
}
PLAIT_FEW_STEPS(hardsigmoid_backward)

// x relu6(x + 3) / 6
template <class T>
PLAIT_HD T hardswish(T x) {
  const T y = x + T(3);
  return x * (y < T(0) ? T(0) : y > T(6) ? T(6) : y) / T(6);
}
PLAIT_FEW_STEPS(hardswish)

// (x / 3 + 1/2) g between -3 and 3, 0 up to -3, g from 3 on; NaN at NaN
template <class T>
PLAIT_HD T hardswish_backward(T g, T x) {
  const T inside = x >= T(3) ? g : g * (x / T(3) + T(0.5));
  return x <= T(-3) ? T(0) : inside;
}
PLAIT_FEW_STEPS(hardswish_backward)

}  // namespace plait::scalar
