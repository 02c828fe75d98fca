// The steps for one element. A rule has numbers, computed once for each parameter in double, and a
// function `element`. It is compiled for float and double, with constant flags, and is then a loop
// of the CPU's kernel; and for Array (arrays.hpp), whose arithmetic calls operators, and is then
// the decomposition for every other device. So a rule branches on flags and chooses between values
// by `select`. Nothing here includes the standard library: see loops.hpp.
#ifndef PLAIT_OPTIM_RULES_HPP
#define PLAIT_OPTIM_RULES_HPP
#include <stdint.h>

#define PLAIT_INLINE inline __attribute__((always_inline))

namespace plait::optim {

// Flags that the compiler knows.
template <uint32_t n>
struct Flags {
  constexpr operator uint32_t() const { return n; }
};

PLAIT_INLINE float root(float x) { return __builtin_sqrtf(x); }
PLAIT_INLINE double root(double x) { return __builtin_sqrt(x); }
template <class T>
PLAIT_INLINE T magnitude(T x) {
  return x < 0 ? -x : x;
}
// nan if either is nan
template <class T>
PLAIT_INLINE T larger(T a, T b) {
  return a > b || a != a ? a : b;
}
// `b` is an element, never a bare number
template <class T>
PLAIT_INLINE T select(bool condition, T a, T b) {
  return condition ? a : b;
}

// The effective gradient of an element is d = by * g + l2 * p, where `by` is `scale`: negative when
// the objective is maximised, and less than one when gradients are clipped.
struct Rule {
  double scale = 1, l2 = 0;
  uint32_t flags = 0;  // bit 0: l2 is not 0; the other bits are the rule's own
  enum : uint32_t { decays = 1 };
  template <class T, class F>
  PLAIT_INLINE T gradient(F flags, T by, T g, T p) const {
    T d = by * g;
    if (flags & decays) d += T(l2) * p;
    return d;
  }
};

// Rules with a running average of the gradient.

// m, the average of the gradient, and v, that of its square.
struct Averages : Rule {
  double keep;     // 1 - lr * weight_decay when decoupled, else 1
  double weight1;  // 1 - beta1
  double beta2, weight2;
  double eps;
  template <class T>
  PLAIT_INLINE void update_averages(T d, T &m, T &v) const {
    m += T(weight1) * (d - m);
    v = T(beta2) * v + T(weight2) * d * d;
  }
};

// N is the type of the numbers that depend on the step number.
template <class N>
struct AdamOf : Averages {
  enum : uint32_t { amsgrad = 2, n_flags = 4 };
  N step;          // lr / (1 - beta1^t)
  N inverse_root;  // 1 / sqrt(1 - beta2^t)
  template <class F>
  void each_number(const F &f) {
    f(step), f(inverse_root);
  }
  template <class T, class F>
  PLAIT_INLINE void element(F flags, T d, T &p, T &m, T &v, T &top) const {
    update_averages(d, m, v);
    T square = v;
    if (flags & amsgrad) top = square = select(top > v, top, v);
    p = T(keep) * p - T(step) * (m / (root(square) * T(inverse_root) + T(eps)));
  }
};

using Adam = AdamOf<double>;

struct NAdam : Averages {
  enum : uint32_t { n_flags = 2 };
  double inverse_root;
  double by_gradient, by_average;  // the factors of the two terms of the step
  template <class T, class F>
  PLAIT_INLINE void element(F, T d, T &p, T &m, T &v, T &) const {
    update_averages(d, m, v);
    p = T(keep) * p -
        (T(by_gradient) * d + T(by_average) * m) / (root(v) * T(inverse_root) + T(eps));
  }
};

struct RAdam : Averages {
  enum : uint32_t { rectified = 2, n_flags = 4 };
  double step;
  template <class T, class F>
  PLAIT_INLINE void element(F flags, T d, T &p, T &m, T &v, T &) const {
    update_averages(d, m, v);
    p = T(keep) * p - T(step) * (flags & rectified ? m / (root(v) + T(eps)) : m);
  }
};

template <class N>
struct AdamaxOf : Rule {
  enum : uint32_t { n_flags = 2 };
  double weight1, beta2, eps;
  N step;  // lr / (1 - beta1^t)
  template <class F>
  void each_number(const F &f) {
    f(step);
  }
  template <class T, class F>
  PLAIT_INLINE void element(F, T d, T &p, T &m, T &top, T &) const {
    m += T(weight1) * (d - m);
    top = larger(T(beta2) * top, magnitude(d) + T(eps));
    p -= T(step) * (m / top);
  }
};
using Adamax = AdamaxOf<double>;

// Rules with sums or averages of squares.

struct Adagrad : Rule {
  enum : uint32_t { n_flags = 2 };
  double step, eps;
  template <class T, class F>
  PLAIT_INLINE void element(F, T d, T &p, T &sum, T &, T &) const {
    sum += d * d;
    p -= T(step) * (d / (root(sum) + T(eps)));
  }
};

struct Adadelta : Rule {
  enum : uint32_t { n_flags = 2 };
  double lr, rho, weight, eps;
  template <class T, class F>
  PLAIT_INLINE void element(F, T d, T &p, T &square, T &moved, T &) const {
    square = T(rho) * square + T(weight) * d * d;
    const T delta = root(moved + T(eps)) / root(square + T(eps)) * d;
    moved = T(rho) * moved + T(weight) * delta * delta;
    p -= T(lr) * delta;
  }
};

struct RmsProp : Rule {
  enum : uint32_t { with_momentum = 2, centered = 4, n_flags = 8 };
  double lr, alpha, weight, eps, momentum;
  template <class T, class F>
  PLAIT_INLINE void element(F flags, T d, T &p, T &square, T &buffer, T &mean) const {
    square = T(alpha) * square + T(weight) * d * d;
    T spread = square;
    if (flags & centered) {
      mean += T(weight) * (d - mean);
      spread -= mean * mean;
    }
    T move = d / (root(spread) + T(eps));
    if (flags & with_momentum) buffer = move = T(momentum) * buffer + move;
    p -= T(lr) * move;
  }
};

// The other rules.

struct Sgd : Rule {
  enum : uint32_t { with_momentum = 2, first = 4, nesterov = 8, n_flags = 16 };
  double lr, momentum;
  double damped;  // 1 - dampening
  template <class T, class F>
  PLAIT_INLINE void element(F flags, T d, T &p, T &buffer, T &, T &) const {
    if (flags & with_momentum) {
      buffer = flags & first ? d : T(momentum) * buffer + T(damped) * d;
      d = flags & nesterov ? d + T(momentum) * buffer : buffer;
    }
    p -= T(lr) * d;
  }
};

struct Rprop : Rule {
  enum : uint32_t { n_flags = 1 };
  double shrink, grow, least, most;
  template <class T, class F>
  PLAIT_INLINE void element(F, T d, T &p, T &previous, T &size, T &) const {
    const T turn = d * previous;
    size = select(turn > T(0), T(grow) * size, select(turn < T(0), T(shrink) * size, size));
    size = select(size < T(least), T(least), select(size > T(most), T(most), size));
    previous = d = select(turn < T(0), T(0), d);
    // d itself: 0, or nan, which must be kept
    p -= select(d > T(0), size, select(d < T(0), -size, d));
  }
};

struct Asgd : Rule {
  enum : uint32_t { averaging = 2, n_flags = 4 };
  double keep;  // 1 - lambd * eta
  double eta, mu;
  template <class T, class F>
  PLAIT_INLINE void element(F flags, T d, T &p, T &average, T &, T &) const {
    p = T(keep) * p - T(eta) * d;
    average = flags & averaging ? average + T(mu) * (p - average) : p;
  }
};

// a running average of other arrays: the "gradient" is the value to take in
struct Average : Rule {
  enum : uint32_t { n_flags = 1 };
  double weight;
  template <class T, class F>
  PLAIT_INLINE void element(F, T d, T &p, T &, T &, T &) const {
    // from the nearer end, so that the result is exact for weights of 0 and 1
    p = weight < 0.5 ? p + T(weight) * (d - p) : d - T(1 - weight) * (d - p);
  }
};

}  // namespace plait::optim
#endif  // PLAIT_OPTIM_RULES_HPP
