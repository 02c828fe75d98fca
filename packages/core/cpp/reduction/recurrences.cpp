// y_i = f_i y_(i-1) + t_i along a dimension, or from its end with the same links. float32 is
// carried in float64: an error of one result would be in all that follow. So is it in filters,
// whose elements depend on several before them.
#include "convolution/convolution.h"
#include "kernel/dense.h"
#include "reduction/scans.h"

namespace plait::core {
namespace {

constexpr int64_t kBlock = 512;

template <class T>
struct Lines {
  using W = typename Carried<T>::type;
  const T *factors, *terms;
  T *to;
  int64_t n, inner;
  bool reverse;

  // Columns [begin, end) of one block of n rows of `inner` elements, at most kBlock.
  void run(int64_t block, int64_t begin, int64_t end) const {
    W acc[kBlock];
    const int64_t width = end - begin, first = block * n * inner + begin;
    for (int64_t j = 0; j < width; j++) acc[j] = W(0);
    for (int64_t i = 0; i < n; i++) {
      const int64_t row = first + (reverse ? n - 1 - i : i) * inner;
      const T *t = terms + row;
      T *y = to + row;
      if (i == 0) {
        for (int64_t j = 0; j < width; j++) y[j] = T(acc[j] = W(t[j]));
        continue;
      }
      const T *f = factors + row + (reverse ? inner : 0);
#pragma GCC ivdep
      for (int64_t j = 0; j < width; j++) y[j] = T(acc[j] = W(f[j]) * acc[j] + W(t[j]));
    }
  }
};

template <class T>
plait_status recurrence(const plait_call *c) {
  const DLTensor *out = result(c);
  Dense<T> factors, terms;
  PLAIT_TRY(factors.take(c, tensor(c, 0)));
  PLAIT_TRY(terms.take(c, tensor(c, 1)));
  int64_t outer = 1, n = 1, inner = 1;
  const int64_t dim = out->ndim ? wrapped(integer(c, 2), out->ndim) : 0;
  for (int d = 0; d < out->ndim; d++) (d < dim ? outer : d == dim ? n : inner) *= out->shape[d];
  const Lines<T> lines{factors, terms, data<T>(out), n, inner, integer(c, 3) != 0};
  const int64_t width = inner < kBlock ? inner : kBlock, parts = ceil_div(inner, width);
  parallel_ranges(c, outer * parts, kSerial / (n * width) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; k++) {
      const int64_t j = k % parts * width;
      lines.run(k / parts, j, j + width < inner ? j + width : inner);
    }
  });
  return PLAIT_OK;
}

plait_status linear_recurrence(plait_call *c) {
  if (numel(result(c)) == 0) return PLAIT_OK;
  const Kind k = kind(result(c)->dtype);
  if (is_complex_kind(k)) {
    PLAIT_COMPLEX(k, return recurrence<T>(c))
    return PLAIT_OK;
  }
  PLAIT_FLOATING(k, return recurrence<T>(c))
  return PLAIT_OK;
}

// Each line has the p zeros before its first element in front of it.
template <class T>
plait_status filter(const plait_call *c) {
  using W = typename Carried<T>::type;
  const DLTensor *self = tensor(c, 0);
  Dense<T> input, multiplier;
  PLAIT_TRY(input.take(c, self));
  PLAIT_TRY(multiplier.take(c, tensor(c, 1)));
  const int64_t channels = self->shape[1], n = self->shape[2], p = tensor(c, 1)->shape[1];
  const T *x = input, *factors = multiplier;
  T *to = data<T>(result(c));
  return with_scratch<W>(c, self->shape[0] * channels, kSerial / (n * (p + 1)) + 1, n + p,
                         [&](int64_t line, W *y) {
                           const T *own = factors + line % channels * p;
                           for (int64_t k = 0; k < p; k++) y[k] = W(0);
                           for (int64_t t = 0; t < n; t++) {
                             W sum = W(x[line * n + t]);
                             for (int64_t k = 0; k < p; k++) sum -= W(own[k]) * y[t + p - 1 - k];
                             y[t + p] = sum;
                             to[line * n + t] = T(sum);
                           }
                         });
}

// all_pole_filter(self, factors)
plait_status all_pole_filter(plait_call *c) {
  if (numel(result(c)) == 0) return PLAIT_OK;
  PLAIT_FLOATING(kind(result(c)->dtype), return filter<T>(c))
  return PLAIT_OK;
}

PLAIT_KERNEL("all_pole_filter", all_pole_filter);
PLAIT_KERNEL("linear_recurrence", linear_recurrence);

}  // namespace
}  // namespace plait::core
