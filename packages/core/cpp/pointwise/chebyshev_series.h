// Sums of Chebyshev polynomials, for special functions. They compute in float64, also for float32
// arguments.
#pragma once
#include "pointwise/math.h"

// Define an operator's function of one or two numbers by a function of float64.
#define PLAIT_UNARY_IN_DOUBLE(name, function) \
  template <class T>                          \
  PLAIT_HD T name(T x) {                      \
    return T(function(double(x)));            \
  }
#define PLAIT_BINARY_IN_DOUBLE(name, function) \
  template <class T>                           \
  PLAIT_HD T name(T x, T y) {                  \
    return T(function(double(x), double(y)));  \
  }

namespace plait::scalar::math {

constexpr double kNan64 = __builtin_nan(""), kInf64 = __builtin_inf();
constexpr double kPi = 3.14159265358979324, kSqrtPi = 1.77245385090551603;
constexpr double kEuler = 0.577215664901532861;

// sum of c[k] T_k(t) for |t| <= 1, by Clenshaw's recurrence
template <int n>
PLAIT_HD_CALL double chebyshev(const double (&c)[n], double t) {
  double ahead = 0, here = 0;
  const double twice = 2 * t;
  for (int k = n - 1; k > 0; k--) {
    const double next = twice * here + (c[k] - ahead);  // a step waits for one sum
    ahead = here;
    here = next;
  }
  return t * here - ahead + c[0];
}

PLAIT_HD bool is_whole(double x) { return x == __builtin_floor(x); }

}  // namespace plait::scalar::math
