// Softmax, its logarithm, and their derivatives.
//
// A row of up to kHeldRow elements is read once: its threads hold it in registers. A longer row is
// the work of one block, and is kept in shared memory if it fits, else read twice. Along other
// dimensions than the last one neighbouring threads have neighbouring columns.
#include "block/softmax_rows.h"
#if PLAIT_HOST
#include "host/copy.h"
#include "host/softmax.h"
#endif

namespace plait::cuda {

#if PLAIT_KERNELS
// The derivative of one element; `sum` is that of the terms.
template <class T>
struct SoftmaxDerivative {
  T sum;
  bool is_log;
  static PLAIT_DEVICE T term(T g, T y, bool is_log) { return is_log ? g : g * y; }
  PLAIT_DEVICE T operator()(T g, T y) const {
    return is_log ? g - scalar::math::exp(y) * sum : y * (g - sum);
  }
};

template <class T>
PLAIT_DEVICE void softmax_rows(Block &t, const SoftmaxArgs &a) {
  softmax_of_rows<T>(t, a, Nothing());
}
template <class T>
PLAIT_DEVICE void softmax_long_rows(Block &t, const SoftmaxArgs &a) {
  softmax_of_long_rows<T>(t, a, Nothing());
}
template <class T>
PLAIT_DEVICE void softmax_columns(Block &t, const SoftmaxArgs &a) {
  softmax_of_columns<T>(t, a, Nothing());
}

template <class E>
PLAIT_DEVICE void softmax_backward_rows(Block &t, const SoftmaxArgs &a) {
  using T = Compute<E>;
  const auto y = t.global<const E>(a.x), grad = t.global<const E>(a.grad);
  const auto out = t.global<E>(a.y);
  const auto room = t.shared<T>(t.warps());
  const int lanes = a.shape.lanes, beside = t.threads() / lanes;
  const RowPart part(a.shape, t.thread() % lanes, int(16 / sizeof(E)));
  for (int64_t first = t.block() * beside; first < a.shape.rows; first += t.blocks() * beside) {
    const int64_t row = first + t.thread() / lanes;
    const bool is_row = row < a.shape.rows;
    T v[kRowItems], g[kRowItems], sum = T(0);
    if (is_row) part.load(y, row * a.shape.n, T(0), v);
    if (is_row) part.load(grad, row * a.shape.n, T(0), g);
    each_item(is_row ? part.items() : 0,
              [&](int k) { sum += SoftmaxDerivative<T>::term(g[k], v[k], a.is_log); });
    const SoftmaxDerivative<T> f{reduce_row(t, sum, lanes, room, Plus()), a.is_log != 0};
    if (!is_row) continue;
    each_item(part.items(), [&](int k) { g[k] = f(g[k], v[k]); });
    part.store(out, row * a.shape.n, g);
  }
}

// Rows that no registers hold, and columns: elements are read twice.
template <class E>
PLAIT_DEVICE void softmax_backward_columns(Block &t, const SoftmaxArgs &a) {
  using T = Compute<E>;
  const auto y = t.global<const E>(a.x), grad = t.global<const E>(a.grad);
  const auto out = t.global<E>(a.y);
  const auto room = t.shared<double>(t.threads());
  const int64_t beside = t.threads() / a.shape.lanes, step = int64_t(a.shape.lanes);
  for (int64_t first = t.block() * beside; first < a.shape.rows; first += t.blocks() * beside) {
    const ColumnPart p(t, a, first);
    const int64_t n = p.is_column ? a.shape.n : 0;
    double sum = 0;
    for (int64_t i = p.lane; i < n; i += 4 * step) {
      T some[4];
#pragma unroll
      for (int u = 0; u < 4; u++) {
        const int64_t row = i + u * step, at = p.base + row * a.inner;
        const bool is_inside = row < n;
        const T g = is_inside ? widen(grad.load(at)) : T(0);
        const T v = is_inside && !a.is_log ? widen(y.load(at)) : T(0);
        some[u] = SoftmaxDerivative<T>::term(g, v, a.is_log);
      }
      sum += double((some[0] + some[1]) + (some[2] + some[3]));
    }
    sum = reduce_columns(t, sum, p.beside, room, Plus());
    if (p.lane == 0) room.store(p.own, sum);
    t.barrier();
    const SoftmaxDerivative<T> f{T(room.load(p.own)), a.is_log != 0};
    t.barrier();
#pragma unroll 4
    for (int64_t i = p.lane; i < n; i += step) {
      const int64_t at = p.base + i * a.inner;
      out.store(at, narrow<E>(f(widen(grad.load(at)), widen(y.load(at)))));
    }
  }
}
#endif
PLAIT_DEVICE_KERNEL(softmax_rows, SoftmaxArgs, 256, FLOATING);
PLAIT_DEVICE_KERNEL(softmax_long_rows, SoftmaxArgs, 512, FLOATING);
PLAIT_DEVICE_KERNEL(softmax_columns, SoftmaxArgs, 256, FLOATING);
PLAIT_DEVICE_KERNEL(softmax_backward_rows, SoftmaxArgs, 256, FLOATING);
PLAIT_DEVICE_KERNEL(softmax_backward_columns, SoftmaxArgs, 256, FLOATING);

#if PLAIT_HOST
namespace {

plait_status backward(const plait_call *c, Kind k, SoftmaxArgs a) {
  if (a.inner == 1 && a.shape.n <= kHeldRow)
    return launch(c, softmax_backward_rows_kernel, k, a, row_blocks(a.shape), kRowThreads, 1024);
  share_columns(&a);
  return launch(c, softmax_backward_columns_kernel, k, a, row_blocks(a.shape), kRowThreads,
                kRowThreads * 8);
}

// (self, dim, dtype) or (grad, result, dim)
plait_status softmax_of(const plait_call *c, bool is_backward, bool is_log) {
  const DLTensor *t = result(c);
  const Kind k = kind(t->dtype);
  if (numel(t) == 0) return PLAIT_OK;
  Operand x, grad;
  DenseResult out;
  PLAIT_TRY(x.take_as(c, tensor(c, is_backward ? 1 : 0), t->dtype));
  if (is_backward) PLAIT_TRY(grad.take_as(c, tensor(c, 0), t->dtype));
  PLAIT_TRY(out.take(c, t));
  const int64_t dim = t->ndim ? wrapped(integer(c, is_backward ? 2 : 1), t->ndim) : 0;
  SoftmaxArgs a{};
  a.x = x.data(), a.grad = is_backward ? grad.data() : nullptr, a.y = out.data();
  a.inner = 1, a.is_log = is_log;
  for (int64_t d = dim + 1; d < t->ndim; d++) a.inner *= t->shape[d];
  const int64_t n = t->ndim ? t->shape[dim] : 1;
  a.shape = row_shape(numel(t) / n, n, size_of(k), {a.x, a.grad, a.y});
  PLAIT_TRY(is_backward ? backward(c, k, a)
                        : launch_softmax(c, k, a, a, softmax_rows_kernel, softmax_long_rows_kernel,
                                         softmax_columns_kernel));
  return out.finish(c);
}

plait_status softmax(plait_call *c) { return softmax_of(c, false, false); }
plait_status log_softmax(plait_call *c) { return softmax_of(c, false, true); }
plait_status softmax_backward(plait_call *c) { return softmax_of(c, true, false); }
plait_status log_softmax_backward(plait_call *c) { return softmax_of(c, true, true); }

PLAIT_KERNEL("softmax", softmax);
PLAIT_KERNEL("log_softmax", log_softmax);
PLAIT_KERNEL("softmax_backward", softmax_backward);
PLAIT_KERNEL("log_softmax_backward", log_softmax_backward);

}  // namespace
#endif
}  // namespace plait::cuda
