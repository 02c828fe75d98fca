// Activations that another kernel applies to its results before it stores them.
#pragma once
#include "kernel/kernel.h"
#include "pointwise/activations.h"

namespace plait::core {

// Activations that may follow. `derivative(g, x)` is the gradient of the activation's input x;
// of those that are `by_result` x may as well be the activation's result.
struct Identity {
  static constexpr bool by_result = true;
  template <class T>
  PLAIT_INLINE T operator()(T x) const {
    return x;
  }
  template <class T>
  PLAIT_INLINE T derivative(T g, T) const {
    return g;
  }
};
struct Relu {
  static constexpr bool by_result = true;
  template <class T>
  PLAIT_INLINE T operator()(T x) const {
    return scalar::relu(x);
  }
  template <class T>
  PLAIT_INLINE T derivative(T g, T x) const {
    return scalar::relu_backward(g, x);
  }
};
struct Hardtanh {
  static constexpr bool by_result = true;
  double low, high;
  template <class T>
  PLAIT_INLINE T operator()(T x) const {
    return scalar::hardtanh(x, T(low), T(high));
  }
  template <class T>
  PLAIT_INLINE T derivative(T g, T x) const {
    return scalar::hardtanh_backward(g, x, T(low), T(high));
  }
};
struct LeakyRelu {
  static constexpr bool by_result = true;  // with a slope that isn't negative
  double slope;
  template <class T>
  PLAIT_INLINE T operator()(T x) const {
    return scalar::leaky_relu(x, T(slope));
  }
  template <class T>
  PLAIT_INLINE T derivative(T g, T x) const {
    return scalar::leaky_relu_backward(g, x, T(slope));
  }
};
struct Silu {
  static constexpr bool by_result = false;
  template <class T>
  PLAIT_INLINE T operator()(T x) const {
    return scalar::silu(x);
  }
  template <class T>
  PLAIT_INLINE T derivative(T g, T x) const {
    return scalar::silu_backward(g, x);
  }
};
struct Hardswish {
  static constexpr bool by_result = false;
  template <class T>
  PLAIT_INLINE T operator()(T x) const {
    return scalar::hardswish(x);
  }
  template <class T>
  PLAIT_INLINE T derivative(T g, T x) const {
    return scalar::hardswish_backward(g, x);
  }
};

// Calls f(activation) with the one that argument `at` names; its numbers follow: min_val, max_val,
// negative_slope.
template <class F>
plait_status with_activation(const plait_call *c, int at, F &&f) {
  if (text_is(c, at, "relu")) return f(Relu());
  if (text_is(c, at, "hardtanh")) return f(Hardtanh{real(c, at + 1), real(c, at + 2)});
  if (text_is(c, at, "leaky_relu")) return f(LeakyRelu{real(c, at + 3)});
  if (text_is(c, at, "silu")) return f(Silu());
  if (text_is(c, at, "hardswish")) return f(Hardswish());
  return PLAIT_DECLINE;
}

// One of them for kernels that have no loop of their own for each: it changes runs of results in a
// buffer that is in the cache. By default it does nothing.
class Activation {
 public:
  Activation() = default;
  template <class A>
  explicit Activation(const A &a) : floats_(apply<A, float>), doubles_(apply<A, double>) {
    static_assert(sizeof(A) <= sizeof state_);
    memcpy(state_, &a, sizeof a);
  }
  explicit operator bool() const { return floats_ != nullptr; }
  void operator()(float *values, int64_t n) const {
    if (floats_) floats_(state_, values, n);
  }
  void operator()(double *values, int64_t n) const {
    if (doubles_) doubles_(state_, values, n);
  }

 private:
  template <class A, class T>
  static void apply(const void *state, T *values, int64_t n) {
    alignas(A) char copy[sizeof(A)];
    memcpy(copy, state, sizeof copy);
    const A a = *reinterpret_cast<const A *>(copy);
    for (int64_t i = 0; i < n; i++) values[i] = a(values[i]);
  }
  void (*floats_)(const void *, float *, int64_t) = nullptr;
  void (*doubles_)(const void *, double *, int64_t) = nullptr;
  char state_[16] = {};
};

}  // namespace plait::core
