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
template <class T>
PLAIT_HD T special_chebyshev_polynomial_t(T x, T n) {
  return T(math::chebyshev_t(double(x), double(n)));
}

// Chebyshev's polynomial T_n(2 x - 1)
template <class T>
PLAIT_HD T special_shifted_chebyshev_polynomial_t(T x, T n) {
  return T(math::chebyshev_t(2 * double(x) - 1, double(n)));
}

// Chebyshev's polynomial U_n(x)
template <class T>
PLAIT_HD T special_chebyshev_polynomial_u(T x, T n) {
  return T(math::chebyshev_u(double(x), double(n)));
}

// Chebyshev's polynomial U_n(2 x - 1)
template <class T>
PLAIT_HD T special_shifted_chebyshev_polynomial_u(T x, T n) {
  return T(math::chebyshev_u(2 * double(x) - 1, double(n)));
}

// Chebyshev's polynomial V_n(x)
template <class T>
PLAIT_HD T special_chebyshev_polynomial_v(T x, T n) {
  return T(math::chebyshev_v(double(x), double(n)));
}

// Chebyshev's polynomial V_n(2 x - 1)
template <class T>
PLAIT_HD T special_shifted_chebyshev_polynomial_v(T x, T n) {
  return T(math::chebyshev_v(2 * double(x) - 1, double(n)));
}

// Chebyshev's polynomial W_n(x)
template <class T>
PLAIT_HD T special_chebyshev_polynomial_w(T x, T n) {
  return T(math::chebyshev_w(double(x), double(n)));
}

// Chebyshev's polynomial W_n(2 x - 1)
template <class T>
PLAIT_HD T special_shifted_chebyshev_polynomial_w(T x, T n) {
  return T(math::chebyshev_w(2 * double(x) - 1, double(n)));
}

// Hermite's polynomial H_n(x)
template <class T>
PLAIT_HD T special_hermite_polynomial_h(T x, T n) {
  return T(math::hermite_h(double(x), double(n)));
}

// Hermite's polynomial He_n(x)
template <class T>
PLAIT_HD T special_hermite_polynomial_he(T x, T n) {
  return T(math::hermite_he(double(x), double(n)));
}

// Laguerre's polynomial L_n(x)
template <class T>
PLAIT_HD T special_laguerre_polynomial_l(T x, T n) {
  return T(math::laguerre_l(double(x), double(n)));
}

// Legendre's polynomial P_n(x)
template <class T>
PLAIT_HD T special_legendre_polynomial_p(T x, T n) {
  return T(math::legendre_p(double(x), double(n)));
}

}  // namespace plait::scalar
