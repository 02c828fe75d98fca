// Binary cross-entropy of one element, of probabilities and of logits, and its derivatives.
#pragma once
#include "pointwise/activations.h"

namespace plait::scalar {

// -(target * log(input) + (1 - target) * log(1 - input)), with logarithms of at least -100
template <class T>
PLAIT_HD T bce_elements(T input, T target) {
  const T yes = math::log(input), no = math::log1p(-input), least = T(-100);
  return (target - T(1)) * (no < least ? least : no) - target * (yes < least ? least : yes);
}

// grad * (input - target) / max(input * (1 - input), 1e-12)
template <class T>
PLAIT_HD T bce_backward(T grad, T input, T target) {
  const T spread = input * (T(1) - input), least = T(1e-12);
  return grad * (input - target) / (spread < least ? least : spread);
}

// (1 - target) * input + log(1 + e^-input), without overflow
template <class T>
PLAIT_HD T logit_bce_elements(T target, T input) {
  return (T(1) - target) * input - log_sigmoid(input);
}

// grad * (sigmoid(input) - target)
template <class T>
PLAIT_HD T logit_bce_backward(T grad, T input, T target) {
  return grad * (math::sigmoid(input) - target);
}

}  // namespace plait::scalar
