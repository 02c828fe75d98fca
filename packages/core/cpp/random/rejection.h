// Draws by rejection from a stream of uniform numbers: Poisson, binomial, gamma. `Draws` has
// `uniform()`, a float64 in (0, 1). The kernels of the CPU and of GPUs use the same functions.
#pragma once
#include <math.h>

#include "pointwise/math.h"

namespace plait::rejection {

constexpr double kHuge = 0x1p53;  // above this number not every whole number is a float64

PLAIT_HD_CALL double log_gamma(double x) {
#if defined(__CUDA_ARCH__)
  return lgamma(x);
#else
  int sign;
  return lgamma_r(x, &sign);
#endif
}
template <class Draws>
PLAIT_HD_CALL double normal_of(Draws &d) {
  const double u = d.uniform(), angle = 6.283185307179586 * d.uniform();
  return sqrt(-2 * log(u)) * cos(angle);
}

// Below 10 the number of uniform factors that keep a product above exp(-rate) (Knuth); else
// Hormann's transformed rejection PTRS (1993), "The transformed rejection method for generating
// Poisson random variables".
template <class Draws>
PLAIT_HD_CALL double poisson_of(double rate, Draws &d) {
  if (!(rate >= 0) || rate > kHuge) return rate >= 0 ? rate : double(scalar::math::kNan);
  if (rate < 10) {
    const double least = exp(-rate);
    double product = d.uniform(), k = 0;
    for (; product > least; k++) product *= d.uniform();
    return k;
  }
  const double b = 0.931 + 2.53 * sqrt(rate), a = -0.059 + 0.02483 * b;
  const double inverse = 1.1239 + 1.1328 / (b - 3.4), squeeze = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    const double u = d.uniform() - 0.5, v = d.uniform(), us = 0.5 - fabs(u);
    const double k = floor((2 * a / us + b) * u + rate + 0.43);
    if (us >= 0.07 && v <= squeeze) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    if (log(v * inverse / (a / (us * us) + b)) <= k * log(rate) - rate - log_gamma(k + 1)) return k;
  }
}

// Successes in n trials of probability p <= 1/2: for few expected ones the gaps between them, which
// are geometric; else Hormann's BTRD without its tables (1993), "The generation of binomial random
// variates".
template <class Draws>
PLAIT_HD_CALL double binomial_of(double n, double p, Draws &d) {
  if (n * p < 10) {
    const double scale = 1 / log1p(-p);
    double at = 0, k = -1;
    for (; at <= n; k++) at += floor(log(d.uniform()) * scale) + 1;
    return k;
  }
  const double q = 1 - p, spread = sqrt(n * p * q), b = 1.15 + 2.53 * spread;
  const double a = -0.0873 + 0.0248 * b + 0.01 * p, centre = n * p + 0.5, ratio = p / q;
  const double alpha = (2.83 + 5.1 / b) * spread, squeeze = 0.92 - 4.2 / b;
  const double mode = floor((n + 1) * p);
  for (;;) {
    const double u = d.uniform() - 0.5, us = 0.5 - fabs(u);
    double v = d.uniform();
    const double k = floor((2 * a / us + b) * u + centre);
    if (k < 0 || k > n) continue;
    if (us >= 0.07 && v <= squeeze) return k;
    v = log(v * alpha / (a / (us * us) + b));
    const double bound = log_gamma(mode + 1) + log_gamma(n - mode + 1) - log_gamma(k + 1) -
                         log_gamma(n - k + 1) + (k - mode) * log(ratio);
    if (v <= bound) return k;
  }
}
template <class Draws>
PLAIT_HD_CALL double binomial_any(double n, double p, Draws &d) {
  if (!(n >= 0) || !(p >= 0) || !(p <= 1)) return double(scalar::math::kNan);
  n = floor(n);
  if (n == 0 || p == 0 || p == 1 || n > kHuge) return n * p;
  return p <= 0.5 ? binomial_of(n, p, d) : n - binomial_of(n, 1 - p, d);
}

// Marsaglia and Tsang (2000), "A simple method for generating gamma variables"; shapes below 1 by a
// power of a uniform number.
template <class Draws>
PLAIT_HD_CALL double gamma_of(double alpha, Draws &d) {
  if (!(alpha > 0)) return alpha == 0 ? 0 : double(scalar::math::kNan);
  if (!(alpha < double(scalar::math::kInf))) return alpha;
  double boost = 1;
  if (alpha < 1) {
    boost = pow(d.uniform(), 1 / alpha);
    alpha += 1;
  }
  const double a = alpha - 1.0 / 3, scale = 1 / sqrt(9 * a);
  for (;;) {
    const double x = normal_of(d), root = 1 + scale * x;
    if (root <= 0) continue;
    const double v = root * root * root, u = d.uniform(), squared = x * x;
    if (u < 1 - 0.0331 * squared * squared) return boost * a * v;  // their squeeze: no logarithms
    if (log(u) < 0.5 * squared + a - a * v + a * log(v)) return boost * a * v;
  }
}

}  // namespace plait::rejection
