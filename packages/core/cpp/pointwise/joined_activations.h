// Activations that another kernel applies to its results before it stores them.
#pragma once
#include <type_traits>

#include "kernel/kernel.h"
#include "kernel/vec.h"
#include "pointwise/activations.h"

namespace plait::core {

// An activation that only holds values between bounds: of x + zero, where zero is 0 if -0 becomes
// 0, and else -0.
struct Bounds {
  bool exist = false;
  double low = 0, high = 0, zero = 0;
};

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
  Bounds bounds() const { return {true, 0, __builtin_inf(), 0}; }
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
  Bounds bounds() const { return {true, low, high, -0.0}; }
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
  explicit Activation(const A &a)
      : floats_{apply<A, float>, move<A, float>}, doubles_{apply<A, double>, move<A, double>} {
    static_assert(sizeof(A) <= sizeof state_);
    memcpy(state_, &a, sizeof a);
    if constexpr (std::is_same_v<A, Relu> || std::is_same_v<A, Hardtanh>) bounds_ = a.bounds();
  }
  explicit operator bool() const { return floats_.apply != nullptr; }
  Bounds bounds() const { return bounds_; }
  void operator()(float *values, int64_t n) const {
    if (floats_.apply) floats_.apply(state_, values, n);
  }
  void operator()(double *values, int64_t n) const {
    if (doubles_.apply) doubles_.apply(state_, values, n);
  }
  // Stores the activation of rows of n values, which lie apart from where they are stored. bias[r]
  // is added to row r first, unless `bias` is null, then `residual`, unless it is null.
  template <class T>
  struct Rows {
    int64_t rows, n;
    const T *from;
    int64_t pitch;  // elements from a row to the next: of `from`, and of `to`
    T *to;
    int64_t plane;
    const T *bias;
    int64_t step;
    const T *residual = nullptr;  // in rows `plane` apart
  };
  void store(const Rows<float> &r) const {
    (floats_.move ? floats_.move : move<Identity, float>)(state_, r);
  }
  void store(const Rows<double> &r) const {
    (doubles_.move ? doubles_.move : move<Identity, double>)(state_, r);
  }

 private:
  template <class A>
  static A read(const void *state) {
    alignas(A) char copy[sizeof(A)];
    memcpy(copy, state, sizeof copy);
    return *reinterpret_cast<const A *>(copy);
  }
  template <class A, class T>
  static void apply(const void *state, T *values, int64_t n) {
    const A a = read<A>(state);
    for (int64_t i = 0; i < n; i++) values[i] = a(values[i]);
  }
  template <class F, class T>
  PLAIT_INLINE static void each(F f, const T *__restrict from, T *__restrict to, int64_t n) {
    constexpr int64_t w = kLanes<T>;
    const int64_t whole = n / w * w;
    for (int64_t i = 0; i < whole; i++) to[i] = f(from[i]);
    if (whole == n) return;
    // the last elements are stored with some before them, which is faster than one by one
    const int64_t rest = n < w ? 0 : n - w;
    for (int64_t i = rest; i < n; i++) to[i] = f(from[i]);
  }
  template <class F, class T>
  PLAIT_INLINE static void each_pair(F f, const T *__restrict from, const T *__restrict more,
                                     T *__restrict to, int64_t n) {
    constexpr int64_t w = kLanes<T>;
    const int64_t whole = n / w * w;
    for (int64_t i = 0; i < whole; i++) to[i] = f(from[i], more[i]);
    if (whole == n) return;
    const int64_t rest = n < w ? 0 : n - w;
    for (int64_t i = rest; i < n; i++) to[i] = f(from[i], more[i]);
  }
  template <class A, class T>
  static void move(const void *state, const Rows<T> &rows) {
    const A a = read<A>(state);
    const Rows<T> own = rows;
    for (int64_t r = 0; r < own.rows; r++) {
      const T *from = own.from + r * own.pitch;
      T *to = own.to + r * own.plane;
      const T shift = own.bias ? own.bias[r * own.step] : T(-0.0);  // x + -0 is x
      if (own.residual)
        each_pair([a, shift](T x, T added) { return a(x + shift + added); }, from,
                  own.residual + r * own.plane, to, own.n);
      else if (own.bias)
        each([a, shift](T x) { return a(x + shift); }, from, to, own.n);
      else
        each(a, from, to, own.n);
    }
  }
  template <class T>
  struct Functions {
    void (*apply)(const void *, T *, int64_t) = nullptr;
    void (*move)(const void *, const Rows<T> &) = nullptr;
  };
  Functions<float> floats_;
  Functions<double> doubles_;
  char state_[16] = {};
  Bounds bounds_;
};

}  // namespace plait::core
