// Distributions by rejection, each element from a stream of its own: Poisson, binomial, gamma; and
// draws from a table of weights.
#include <math.h>

#include "random/random.h"

namespace plait::core {
namespace {

constexpr double kHuge = 0x1p53;  // above this number not every whole number is a float64

double log_gamma(double x) {
  int sign;
  return lgamma_r(x, &sign);
}
double normal_of(Draws &d) {
  const double u = d.uniform(), angle = 6.283185307179586 * d.uniform();
  return sqrt(-2 * log(u)) * cos(angle);
}

// Below 10 the number of uniform factors that keep a product above exp(-rate) (Knuth); else
// Hormann's transformed rejection PTRS (1993), "The transformed rejection method for generating
// Poisson random variables".
double poisson_of(double rate, Draws &d) {
  if (!(rate >= 0) || rate > kHuge) return rate >= 0 ? rate : NAN;
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
double binomial_of(double n, double p, Draws &d) {
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
double binomial_any(double n, double p, Draws &d) {
  if (!(n >= 0) || !(p >= 0) || !(p <= 1)) return NAN;
  n = floor(n);
  if (n == 0 || p == 0 || p == 1 || n > kHuge) return n * p;
  return p <= 0.5 ? binomial_of(n, p, d) : n - binomial_of(n, 1 - p, d);
}

// Marsaglia and Tsang (2000), "A simple method for generating gamma variables"; shapes below 1 by a
// power of a uniform number.
double gamma_of(double alpha, Draws &d) {
  if (!(alpha > 0)) return alpha == 0 ? 0 : NAN;
  if (!(alpha < HUGE_VAL)) return alpha;
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

template <class Draw>
plait_status each(const plait_call *c, const Draw &draw) {
  const DLTensor *a = tensor(c, 0), *b = c->n_in > 1 ? tensor(c, 1) : nullptr;
  DLTensor *out = result(c);
  const int64_t n = numel(out);
  const Kind k = kind(out->dtype);
  if (k != F32 && k != F64) return PLAIT_DECLINE;
  const Stream s(c, n);
  const auto read = [k](const DLTensor *t, int64_t i) {
    if (!t) return 0.0;
    const char *p = element(t, i);
    return k == F32 ? double(*reinterpret_cast<const float *>(p))
                    : *reinterpret_cast<const double *>(p);
  };
  parallel_ranges(c, n, 1024, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      Draws d(s, i);
      const double x = draw(read(a, i), read(b, i), d);
      char *to = element(out, i);
      if (k == F32)
        *reinterpret_cast<float *>(to) = float(x);
      else
        *reinterpret_cast<double *>(to) = x;
    }
  });
  return PLAIT_OK;
}

plait_status poisson(plait_call *c) {
  return each(c, [](double rate, double, Draws &d) { return poisson_of(rate, d); });
}
plait_status binomial_kernel(plait_call *c) {
  return each(c, [](double n, double p, Draws &d) { return binomial_any(n, p, d); });
}
plait_status standard_gamma(plait_call *c) {
  return each(c, [](double alpha, double, Draws &d) { return gamma_of(alpha, d); });
}
PLAIT_KERNEL("poisson", poisson);
PLAIT_KERNEL("binomial_draw", binomial_kernel);
PLAIT_KERNEL("_standard_gamma", standard_gamma);

// multinomial: draws from a table of weights.

// A heap of the smallest keys first.
struct Key {
  double value;
  int64_t index;
};
void sift(Key *heap, int64_t n, int64_t at) {
  for (;;) {
    int64_t least = at;
    for (int64_t child = 2 * at + 1; child <= 2 * at + 2 && child < n; child++)
      if (heap[child].value < heap[least].value) least = child;
    if (least == at) return;
    const Key swap = heap[at];
    heap[at] = heap[least];
    heap[least] = swap;
    at = least;
  }
}

// Without replacement: the order in which exponential clocks with these rates ring.
void draw_distinct(const double *weight, int64_t n, int64_t count, Draws &d, Key *heap,
                   int64_t *to) {
  int64_t m = 0;
  for (int64_t i = 0; i < n; i++) {
    const double time = -log(d.uniform());
    if (weight[i] > 0) heap[m++] = {time / weight[i], i};
  }
  for (int64_t i = m / 2; i-- > 0;) sift(heap, m, i);
  for (int64_t k = 0; k < count; k++) {
    to[k] = heap[0].index;
    heap[0] = heap[--m];
    sift(heap, m, 0);
  }
}
// With replacement: where a uniform number falls among the sums.
void draw_again(double *weight, int64_t n, int64_t count, Draws &d, int64_t *to) {
  double total = 0;
  int64_t last = 0;  // of the categories that can be drawn
  for (int64_t i = 0; i < n; i++) {
    if (weight[i] > 0) last = i;
    weight[i] = total += weight[i];
  }
  for (int64_t k = 0; k < count; k++) {
    const double u = d.uniform() * total;
    int64_t low = 0, high = n;  // the first sum above u
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (weight[middle] > u)
        high = middle;
      else
        low = middle + 1;
    }
    to[k] = low < last ? low : last;
  }
}

plait_status check_weights(const plait_call *c, const double *weight, int64_t n, int64_t count,
                           bool again) {
  double total = 0;
  int64_t possible = 0;
  for (int64_t i = 0; i < n; i++) {
    if (!(weight[i] >= 0 && weight[i] < HUGE_VAL))
      return PLAIT_FAIL(c, PLAIT_VALUE_ERROR,
                        "`self` must hold finite weights that are not negative; got %g", weight[i]);
    total += weight[i];
    possible += weight[i] > 0;
  }
  if (!(total > 0))
    return PLAIT_FAIL(c, PLAIT_VALUE_ERROR, "`self` must hold a weight above 0; their sum is %g",
                      total);
  if (!again && possible < count)
    return PLAIT_FAIL(c, PLAIT_VALUE_ERROR,
                      "`num_samples` without replacement must not exceed the weights above 0; got "
                      "%lld and %lld",
                      (long long)count, (long long)possible);
  return PLAIT_OK;
}

plait_status multinomial(
    plait_call *c) {  // multinomial(self, num_samples, replacement, *, generator)
  const DLTensor *self = tensor(c, 0);
  DLTensor *out = result(c);
  const Kind k = kind(self->dtype);
  if (k != F32 && k != F64) return PLAIT_DECLINE;
  const int64_t n = self->shape[self->ndim - 1], rows = self->ndim == 2 ? self->shape[0] : 1;
  const int64_t count = out->shape[out->ndim - 1];
  const bool again = integer(c, 2) != 0;
  if (count == 0) return PLAIT_OK;
  Workspace weights, keys;
  PLAIT_TRY(weights.take(c, uint64_t(n) * sizeof(double)));
  PLAIT_TRY(keys.take(c, uint64_t(n) * sizeof(Key)));
  double *weight = weights.as<double>();
  const Stream s(c, rows);
  for (int64_t r = 0; r < rows; r++) {
    for (int64_t i = 0; i < n; i++) {
      const char *p = element(self, r * n + i);
      weight[i] = k == F32 ? double(*reinterpret_cast<const float *>(p))
                           : *reinterpret_cast<const double *>(p);
    }
    PLAIT_TRY(check_weights(c, weight, n, count, again));
    Draws d(s, r);
    int64_t *to = data<int64_t>(out) + r * count;
    if (again)
      draw_again(weight, n, count, d, to);
    else
      draw_distinct(weight, n, count, d, keys.as<Key>(), to);
  }
  return PLAIT_OK;
}
PLAIT_KERNEL("multinomial", multinomial);

}  // namespace
}  // namespace plait::core
