// Distributions by rejection, each element from a stream of its own: Poisson, binomial, gamma; and
// draws from a table of weights.
#include "random/random.h"
#include "random/rejection.h"

namespace plait::core {
namespace {

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
  return each(c, [](double rate, double, Draws &d) { return rejection::poisson_of(rate, d); });
}
plait_status binomial_kernel(plait_call *c) {
  return each(c, [](double n, double p, Draws &d) { return rejection::binomial_any(n, p, d); });
}
plait_status standard_gamma(plait_call *c) {
  return each(c, [](double alpha, double, Draws &d) { return rejection::gamma_of(alpha, d); });
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
