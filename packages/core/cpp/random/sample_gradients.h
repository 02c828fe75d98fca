// The derivative of a sample of the gamma or beta distribution with respect to its first parameter,
// at constant cumulative probability F: -(dF/da) / density (implicit reparameterisation: Figurnov,
// Mohamed and Mnih, 2018). F is a known factor times a series or a continued fraction, which are
// computed together with their derivatives. F or 1 - F is computed, whichever is smaller, so that
// nothing cancels.
#pragma once
#include "pointwise/gamma.h"

namespace plait::scalar::math {

constexpr int kMostTerms = 100000;  // the limit of terms; about 10 sqrt(a) are needed

// The precision of the series for float32 and float64 results.
template <class T>
constexpr double kSmallTerm = sizeof(T) == 8 ? 1e-17 : 1e-10;

// A number and its derivative.
struct Dual {
  double value, slope;
};
PLAIT_HD Dual operator*(Dual p, Dual q) {
  return {p.value * q.value, p.value * q.slope + p.slope * q.value};
}
PLAIT_HD Dual operator/(Dual p, Dual q) {
  const double inverse = 1 / q.value, ratio = p.value * inverse;
  return {ratio, (p.slope - ratio * q.slope) * inverse};
}
PLAIT_HD Dual operator+(Dual p, Dual q) { return {p.value + q.value, p.slope + q.slope}; }

// One step of Lentz's method for the continued fraction b0 + n1 / (b1 + n2 / (b2 + ...)).
struct Lentz {
  Dual c, d, made;
  // Takes the next numerator and denominator; true once neither part of the fraction changes.
  PLAIT_HD_CALL bool step(Dual n, Dual b, double small) {
    const Dual below = n * d + b;
    const double inverse = 1 / below.value;
    d = {inverse, -below.slope * inverse * inverse};
    c = b + n / c;
    const Dual factor = c * d, before = made;
    made = before * factor;
    return abs(factor.value - 1) < 100 * small &&
           abs(made.slope - before.slope) <= 1e4 * small * abs(made.slope) + 1e-300;
  }
};

// The gamma distribution.

// Cornish and Fisher's expansion of a sample by the normal number z behind it, for large a.
PLAIT_HD_CALL double gamma_gradient_large(double a, double x) {
  const double root = sqrt(a);
  double z = 3 * root * (__builtin_cbrt(x / a) - 1 + 1 / (9 * a));  // Wilson and Hilferty
  for (int k = 0; k < 2; k++) {
    const double result = a + root * z + (z * z - 1) / 3 + (z * z - 7) * z / (36 * root);
    z -= (result - x) / (root + 2 * z / 3 + (3 * z * z - 7) / (36 * root));
  }
  return 1 + z / (2 * root) - (z * z - 7) * z / (72 * a * root);
}
// P = x^a exp(-x) / gamma(a + 1) * sum (DLMF 8.11.4)
PLAIT_HD_CALL double gamma_gradient_below(double a, double x, double small) {
  Dual term{1, 0}, sum{1, 0};
  for (int k = 1; k < kMostTerms; k++) {
    const double inverse = 1 / (a + k), ratio = x * inverse;
    term = {term.value * ratio, (term.slope - term.value * inverse) * ratio};
    sum = sum + term;
    if (term.value < small * sum.value && abs(term.slope) < small * abs(sum.slope)) break;
  }
  return -x / a * (sum.value * (::log(x) - digamma(a + 1)) + sum.slope);
}
// Q = x^a exp(-x) / gamma(a) / (x + 1 - a - 1 (1 - a) / (x + 3 - a - ...)) (DLMF 8.9.2)
PLAIT_HD_CALL double gamma_gradient_above(double a, double x, double small) {
  const Dual first{x + 1 - a, -1};
  Lentz fraction{{1e300, 0}, Dual{1, 0} / first, Dual{1, 0} / first};
  for (int k = 1; k < kMostTerms; k++)
    if (fraction.step({-k * (k - a), double(k)}, {x + 1 - a + 2 * k, -1}, small)) break;
  return x * (fraction.made.value * (::log(x) - digamma(a)) + fraction.made.slope);
}
PLAIT_HD_CALL double gamma_gradient(double a, double x, double small) {
  if (!(a > 0) || !(x >= 0)) return kNan64;
  if (x == 0) return 0;
  if (x == kInf64 || a == kInf64) return kNan64;
  if (a > 1e5) return gamma_gradient_large(a, x);
  return x < a + 1 ? gamma_gradient_below(a, x, small) : gamma_gradient_above(a, x, small);
}

// The beta distribution.

// The fraction of I_x(p, q) = x^p (1 - x)^q / (p B(p, q)) / (1 + d1 / (1 + d2 / ...))
// (DLMF 8.17.22) for x < (p + 1) / (p + q + 2)
PLAIT_HD_CALL Dual beta_fraction(Dual p, Dual q, double x, double small) {
  const auto at = [&p](double m) { return Dual{p.value + m, p.slope}; };
  const Dual both = p + q, one{1, 0}, to{x, 0};
  Lentz fraction{{1e300, 0}, one, one};
  for (int m = 0; m < kMostTerms; m++) {
    const Dual odd =
        Dual{-x, 0} * at(m) * Dual{both.value + m, both.slope} / (at(2 * m) * at(2 * m + 1));
    const Dual even = Dual{double(m + 1), 0} * Dual{q.value - m - 1, q.slope} * to /
                      (at(2 * m + 1) * at(2 * m + 2));
    const bool done = fraction.step(odd, one, small);
    if (fraction.step(even, one, small) && done) break;
  }
  return fraction.made;
}
// mean + deviation z + skewness (z^2 - 1) / 6 with z kept, for large a and b
PLAIT_HD_CALL double beta_gradient_large(double a, double b, double x) {
  const double n = a + b, mean = a / n;
  const double variance = mean * (1 - mean) / (n + 1), deviation = sqrt(variance);
  const double z = (x - mean) / deviation;
  const double moved = 0.5 * deviation * (1 / a - 2 / n - 1 / (n + 1));
  return (b / (n * n) + moved * z) / (1 - x);
}
// The derivative for a, divided by 1 - x: what normalising the rest to 1 - x needs.
PLAIT_HD_CALL double beta_gradient(double x, double a, double b, double small) {
  if (!(a > 0) || !(b >= 0) || !(x >= 0) || !(x <= 1)) return kNan64;
  if (x == 0 || b == 0) return 0;
  if (a > 1e6 && b > 1e6) return beta_gradient_large(a, b, x);
  const double whole = digamma(a + b);
  if (x < (a + 1) / (a + b + 2)) {
    const Dual f = beta_fraction({a, 1}, {b, 0}, x, small);
    return -x / a * (f.value * (::log(x) - digamma(a + 1) + whole) + f.slope);
  }
  const Dual f = beta_fraction({b, 0}, {a, 1}, 1 - x, small);
  return x / b * (f.value * (::log(x) - digamma(a) + whole) + f.slope);
}

}  // namespace plait::scalar::math

namespace plait::scalar {

// the derivative of a sample of the gamma distribution with respect to its shape
template <class T>
PLAIT_HD T gamma_sample_grad(T a, T x) {
  return T(math::gamma_gradient(double(a), double(x), math::kSmallTerm<T>));
}

// the derivative of a sample x of the beta distribution with respect to its first parameter,
// divided by 1 - x
template <class T>
PLAIT_HD T beta_sample_grad(T x, T a, T b) {
  return T(math::beta_gradient(double(x), double(a), double(b), math::kSmallTerm<T>));
}

}  // namespace plait::scalar
