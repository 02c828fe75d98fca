// Running sums and products along a dimension, in place in the result.
#include "kernels/copy.h"
#include "scalar/math.h"

namespace plait::core {
namespace {

template <class T, bool product>
void scan(T *p, int64_t n, int64_t inner) {
  using W = scalar::math::wide<T>;
  if (inner == 1) {
    W acc = W(product ? 1 : 0);
    for (int64_t i = 0; i < n; i++) {
      acc = product ? W(acc * W(p[i])) : W(acc + W(p[i]));
      p[i] = T(acc);
    }
    return;
  }
  for (int64_t i = 1; i < n; i++) {
    T *to = p + i * inner, *before = to - inner;
#pragma GCC ivdep
    for (int64_t j = 0; j < inner; j++)
      to[j] = product ? T(W(before[j]) * W(to[j])) : T(W(before[j]) + W(to[j]));
  }
}

template <bool product>
plait_status cumulate(const plait_call *c) {
  DLTensor *out = result(c);
  PLAIT_TRY(copy(c, out, tensor(c, 0)));
  if (out->ndim == 0 || numel(out) == 0) return PLAIT_OK;
  const int64_t dim = wrapped(integer(c, 1), out->ndim), n = out->shape[dim];
  int64_t inner = 1;
  for (int64_t d = dim + 1; d < out->ndim; d++) inner *= out->shape[d];
  const int64_t outer = numel(out) / (n * inner);
  PLAIT_NUMERIC(kind(out->dtype), {
    T *p = data<T>(out);
    parallel_ranges(c, outer, kSerial / (n * inner) + 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) scan<T, product>(p + i * n * inner, n, inner);
    });
  })
  return PLAIT_OK;
}

plait_status cumsum(plait_call *c) { return cumulate<false>(c); }
plait_status cumprod(plait_call *c) { return cumulate<true>(c); }

PLAIT_KERNEL("cumsum", cumsum);
PLAIT_KERNEL("cumprod", cumprod);

}  // namespace
}  // namespace plait::core
