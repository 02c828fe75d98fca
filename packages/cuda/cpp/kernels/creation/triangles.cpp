// tril and triu: one triangle of the last two dimensions, zeros elsewhere.
#include "block/block.h"

namespace plait::cuda {
namespace {

struct TriangleArgs {
  const void *from;
  void *to;
  int64_t n, rows, columns, diagonal;
  int32_t is_lower, is_large;
};

#if PLAIT_KERNELS
constexpr int kUnrolled = 4;  // independent loads of a thread

PLAIT_DEVICE bool is_inside(const TriangleArgs &a, int64_t i) {
  int64_t row, column;
  if (a.is_large) {
    row = i / a.columns % a.rows, column = i % a.columns;
  } else {
    const uint32_t all = uint32_t(i) / uint32_t(a.columns);
    row = all % uint32_t(a.rows), column = uint32_t(i) - all * uint32_t(a.columns);
  }
  // compared without row + diagonal, which could overflow
  const int64_t over = column - row;
  return a.is_lower ? over <= a.diagonal : over >= a.diagonal;
}

template <class T>
PLAIT_DEVICE void copy_triangle(Thread &t, const TriangleArgs &a) {
  const auto from = t.global<const T>(a.from);
  const auto to = t.global<T>(a.to);
  const int64_t step = t.stride();
  for (int64_t i = t.index(); i < a.n; i += kUnrolled * step) {
    T v[kUnrolled];
#pragma unroll
    for (int u = 0; u < kUnrolled; u++) {
      const int64_t at = i + u * step;
      v[u] = at < a.n && is_inside(a, at) ? from.load(at) : T{};
    }
#pragma unroll
    for (int u = 0; u < kUnrolled; u++)
      if (i + u * step < a.n) to.store(i + u * step, v[u]);
  }
}
#endif

PLAIT_DEVICE_KERNEL(copy_triangle, TriangleArgs, 256, SIZES);

}  // namespace
}  // namespace plait::cuda

#if PLAIT_HOST
#include "host/copy.h"

namespace plait::cuda {
namespace {

plait_status triangle(plait_call *c, bool is_lower) {
  const DLTensor *self = tensor(c, 0), *out = result(c);
  const int64_t n = numel(out);
  if (n == 0) return PLAIT_OK;
  Operand from;
  DenseResult to;
  PLAIT_TRY(from.take_dense(c, self));
  PLAIT_TRY(to.take(c, out));
  const TriangleArgs a{from.data(),
                       to.data(),
                       n,
                       self->shape[self->ndim - 2],
                       self->shape[self->ndim - 1],
                       integer(c, 1),
                       is_lower,
                       n >= int64_t(1) << 31};
  PLAIT_TRY(launch(c, copy_triangle_kernel, instance_of_size(size_of(kind(out->dtype))), a,
                   blocks_for(c, ceil_div(n, 4), 256), 256));
  return to.finish(c);
}
plait_status tril(plait_call *c) { return triangle(c, true); }
plait_status triu(plait_call *c) { return triangle(c, false); }

PLAIT_KERNEL("tril", tril);
PLAIT_KERNEL("triu", triu);

}  // namespace
}  // namespace plait::cuda
#endif
