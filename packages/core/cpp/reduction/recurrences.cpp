// y_i = f_i y_(i-1) + t_i along a dimension, or from its end with the same links. float32 is
// carried in float64: an error of one result would be in all that follow.
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

PLAIT_KERNEL("linear_recurrence", linear_recurrence);

}  // namespace
}  // namespace plait::core
