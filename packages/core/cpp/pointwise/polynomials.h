// Orthogonal polynomials of degree n at x by their three-term recurrences (DLMF 18.9), and
// Chebyshev's of large degree by trigonometry (DLMF 18.5).
#pragma once
#include "pointwise/chebyshev_series.h"

namespace plait::scalar::math {

constexpr double kRecurrenceLimit = 1e5;  // larger degrees are not computed step by step

// p_0 = 1, p_1 = first, p_k+1 = 2 x p_k - p_k-1
PLAIT_HD_CALL double chebyshev_steps(double x, double n, double first) {
  if (!(n > -1)) return n != n ? n : 0;
  if (n > kRecurrenceLimit) return kNan64;
  double before = 1, here = first;
  if (n < 1) return before;
  for (int64_t k = 1; k < int64_t(n); k++) {
    const double next = 2 * x * here - before;
    before = here;
    here = next;
  }
  return here;
}
PLAIT_HD_CALL double chebyshev_t(double x, double n) {
  if (abs(x) < 1 && n > 40) return ::cos(__builtin_trunc(n) * ::acos(x));
  return chebyshev_steps(x, n, x);
}
PLAIT_HD_CALL double chebyshev_u(double x, double n) {
  const double angle = ::acos(x);
  if (abs(x) < 0.99 && n > 40) return ::sin((__builtin_trunc(n) + 1) * angle) / ::sin(angle);
  return chebyshev_steps(x, n, 2 * x);
}
PLAIT_HD_CALL double chebyshev_v(double x, double n) {
  const double angle = ::acos(x);
  if (abs(x) < 0.99 && n > 40) return ::cos((__builtin_trunc(n) + 0.5) * angle) / ::cos(angle / 2);
  return chebyshev_steps(x, n, 2 * x - 1);
}
PLAIT_HD_CALL double chebyshev_w(double x, double n) {
  const double angle = ::acos(x);
  if (abs(x) < 0.99 && n > 40) return ::sin((__builtin_trunc(n) + 0.5) * angle) / ::sin(angle / 2);
  return chebyshev_steps(x, n, 2 * x + 1);
}
// the polynomial at 2 x - 1
template <double (*polynomial)(double, double)>
PLAIT_HD_CALL double shifted(double x, double n) {
  return polynomial(2 * x - 1, n);
}

// p_0 = 1, p_1 = first(x), p_k+1 = next(k, p_k, p_k-1)
template <class Next>
PLAIT_HD_CALL double recurrence(double n, double first, Next next) {
  if (!(n > -1)) return n != n ? n : 0;
  if (n > kRecurrenceLimit) return kNan64;
  double before = 1, here = first;
  if (n < 1) return before;
  for (int64_t k = 1; k < int64_t(n); k++) {
    const double after = next(double(k), here, before);
    before = here;
    here = after;
    if (here != here) break;
  }
  return here;
}
PLAIT_HD_CALL double hermite_h(double x, double n) {
  return recurrence(n, 2 * x, [=](double k, double p, double q) { return 2 * (x * p - k * q); });
}
PLAIT_HD_CALL double hermite_he(double x, double n) {
  return recurrence(n, x, [=](double k, double p, double q) { return x * p - k * q; });
}
PLAIT_HD_CALL double laguerre_l(double x, double n) {
  return recurrence(n, 1 - x, [=](double k, double p, double q) {
    return ((2 * k + 1 - x) * p - k * q) / (k + 1);
  });
}
PLAIT_HD_CALL double legendre_p(double x, double n) {
  return recurrence(
      n, x, [=](double k, double p, double q) { return ((2 * k + 1) * x * p - k * q) / (k + 1); });
}

}  // namespace plait::scalar::math

namespace plait::scalar {

// Chebyshev's polynomial T_n(x)
PLAIT_BINARY_IN_DOUBLE(special_chebyshev_polynomial_t, math::chebyshev_t)

// Chebyshev's polynomial T_n(2 x - 1)
PLAIT_BINARY_IN_DOUBLE(special_shifted_chebyshev_polynomial_t, math::shifted<math::chebyshev_t>)

// Chebyshev's polynomial U_n(x)
PLAIT_BINARY_IN_DOUBLE(special_chebyshev_polynomial_u, math::chebyshev_u)

// Chebyshev's polynomial U_n(2 x - 1)
PLAIT_BINARY_IN_DOUBLE(special_shifted_chebyshev_polynomial_u, math::shifted<math::chebyshev_u>)

// Chebyshev's polynomial V_n(x)
PLAIT_BINARY_IN_DOUBLE(special_chebyshev_polynomial_v, math::chebyshev_v)

// Chebyshev's polynomial V_n(2 x - 1)
PLAIT_BINARY_IN_DOUBLE(special_shifted_chebyshev_polynomial_v, math::shifted<math::chebyshev_v>)

// Chebyshev's polynomial W_n(x)
PLAIT_BINARY_IN_DOUBLE(special_chebyshev_polynomial_w, math::chebyshev_w)

// Chebyshev's polynomial W_n(2 x - 1)
PLAIT_BINARY_IN_DOUBLE(special_shifted_chebyshev_polynomial_w, math::shifted<math::chebyshev_w>)

// Hermite's polynomial H_n(x)
PLAIT_BINARY_IN_DOUBLE(special_hermite_polynomial_h, math::hermite_h)

// Hermite's polynomial He_n(x)
PLAIT_BINARY_IN_DOUBLE(special_hermite_polynomial_he, math::hermite_he)

// Laguerre's polynomial L_n(x)
PLAIT_BINARY_IN_DOUBLE(special_laguerre_polynomial_l, math::laguerre_l)

// Legendre's polynomial P_n(x)
PLAIT_BINARY_IN_DOUBLE(special_legendre_polynomial_p, math::legendre_p)

}  // namespace plait::scalar
