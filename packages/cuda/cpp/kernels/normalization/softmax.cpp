// Softmax, its logarithm, and their derivatives.
//
// A row of up to kHeldRow elements is read once: its threads hold it in registers. A longer row is
// the work of one block, and is kept in shared memory if it fits, else read twice. Along other
// dimensions than the last one neighbouring threads have neighbouring columns.
#include "block/softmax.h"

#include "block/reduce.h"
#include "block/rows.h"
#if PLAIT_HOST
#include "host/copy.h"
#include "host/rows.h"
#endif

namespace plait::cuda {

struct SoftmaxArgs {
  const void *x, *grad;  // of the derivative `x` is the result of the forward pass
  void *y;
  RowShape shape;
  int64_t inner;  // columns: elements of a row are so far apart
  int32_t is_log, is_kept;
};

#if PLAIT_KERNELS
// y = f(x) of one element.
template <class T>
struct SoftmaxOf {
  T top, factor;
  bool is_log;
  // from the largest element and the sum of exponentials
  PLAIT_DEVICE SoftmaxOf(T top_, T sum, bool log) : top(top_), is_log(log) {
    factor = log ? scalar::math::log(sum) : T(1) / sum;
  }
  PLAIT_DEVICE T operator()(T x) const {
    return is_log ? (x - top) - factor : scalar::math::exp(x - top) * factor;
  }
};
// What a row with an infinite largest element has no softmax of.
template <class T>
PLAIT_DEVICE T sum_or_nan(const LogSum<T> &v) {
  return v.top - v.top == T(0) ? v.sum : T(scalar::math::kNan);
}
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

template <class E>
PLAIT_DEVICE void softmax_rows(Block &t, const SoftmaxArgs &a) {
  using T = Compute<E>;
  const auto x = t.global<const E>(a.x);
  const auto y = t.global<E>(a.y);
  const auto room = t.shared<T>(t.warps());
  const int lanes = a.shape.lanes, beside = t.threads() / lanes;
  const RowPart part(a.shape, t.thread() % lanes, int(16 / sizeof(E)));
  for (int64_t first = t.block() * beside; first < a.shape.rows; first += t.blocks() * beside) {
    const int64_t row = first + t.thread() / lanes;
    const bool is_row = row < a.shape.rows;
    T v[kRowItems], top = -T(scalar::math::kInf), sum = T(0);
    if (is_row) part.load(x, row * a.shape.n, top, v);
    each_item(is_row ? part.items() : 0, [&](int k) { top = v[k] > top ? v[k] : top; });
    top = reduce_row(t, top, lanes, room, Larger());
    each_item(is_row ? part.items() : 0, [&](int k) {
      const T d = v[k] - top, e = scalar::math::exp(d);
      v[k] = a.is_log ? d : e;
      sum += e;
    });
    sum = reduce_row(t, sum, lanes, room, Plus());
    if (!is_row) continue;
    const T log = a.is_log ? scalar::math::log(sum) : T(0), share = T(1) / sum;
    each_item(part.items(), [&](int k) { v[k] = a.is_log ? v[k] - log : v[k] * share; });
    part.store(y, row * a.shape.n, v);
  }
}

template <class E>
PLAIT_DEVICE void softmax_long_rows(Block &t, const SoftmaxArgs &a) {
  using T = Compute<E>;
  using Row = LongRow<E>;
  const auto x = t.global<const E>(a.x);
  const auto y = t.global<E>(a.y);
  const auto room = t.shared<LogSum<T>>(t.warps());
  const Row own(t, a.shape, a.is_kept);
  const T absent = -T(scalar::math::kInf);
  for (int64_t row = t.block(); row < a.shape.rows; row += t.blocks()) {
    const int64_t base = row * a.shape.n;
    LogSum<T> value = no_log_sum<T>();
    own.first_pass(x, base, absent, [&](int64_t, T *v) {
      value = join_log_sums(value, log_sum_of<Row::kWidth>(v));
    });
    value = reduce_row(t, value, t.threads(), room,
                       [](const LogSum<T> &p, const LogSum<T> &q) { return join_log_sums(p, q); });
    const SoftmaxOf<T> f(value.top, sum_or_nan(value), a.is_log);
    own.next_pass(x, base, absent, [&](int64_t i, T *v) {
#pragma unroll
      for (int e = 0; e < Row::kWidth; e++) v[e] = f(v[e]);
      own.store(y, base, i, v);
    });
  }
}

// The thread's column, and the rows of it that it reads: from `lane` on in steps of `lanes`.
struct ColumnPart {
  int64_t base, column;
  int own, lane, beside;
  bool is_column;
  PLAIT_DEVICE ColumnPart(Block &t, const SoftmaxArgs &a, int64_t first) {
    beside = t.threads() / a.shape.lanes;
    own = t.thread() % beside, lane = t.thread() / beside;
    column = first + own;
    is_column = column < a.shape.rows;
    base = column / a.inner * a.inner * a.shape.n + column % a.inner;
  }
};

// Along another dimension than the last one: `rows` columns.
template <class E>
PLAIT_DEVICE void softmax_columns(Block &t, const SoftmaxArgs &a) {
  using T = Compute<E>;
  const auto x = t.global<const E>(a.x);
  const auto y = t.global<E>(a.y);
  const auto room = t.shared<LogSum<T>>(t.threads());
  const int64_t beside = t.threads() / a.shape.lanes, step = int64_t(a.shape.lanes);
  for (int64_t first = t.block() * beside; first < a.shape.rows; first += t.blocks() * beside) {
    const ColumnPart p(t, a, first);
    LogSum<T> value = no_log_sum<T>();
    const int64_t n = p.is_column ? a.shape.n : 0;
    for (int64_t i = p.lane; i < n; i += 4 * step) {
      T some[4];
#pragma unroll
      for (int u = 0; u < 4; u++) {
        const int64_t at = i + u * step;
        some[u] = at < n ? widen(x.load(p.base + at * a.inner)) : -T(scalar::math::kInf);
      }
      value = join_log_sums(value, log_sum_of<4>(some));
    }
    value = reduce_columns(t, value, p.beside, room, [](const LogSum<T> &u, const LogSum<T> &v) {
      return join_log_sums(u, v);
    });
    if (p.lane == 0) room.store(p.own, value);
    t.barrier();
    value = room.load(p.own);
    t.barrier();
    const SoftmaxOf<T> f(value.top, sum_or_nan(value), a.is_log);
#pragma unroll 4
    for (int64_t i = p.lane; i < n; i += step) {
      const int64_t at = p.base + i * a.inner;
      y.store(at, narrow<E>(f(widen(x.load(at)))));
    }
  }
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
PLAIT_DEVICE_KERNEL(softmax_long_rows, SoftmaxArgs, 256, FLOATING);
PLAIT_DEVICE_KERNEL(softmax_columns, SoftmaxArgs, 256, FLOATING);
PLAIT_DEVICE_KERNEL(softmax_backward_rows, SoftmaxArgs, 256, FLOATING);
PLAIT_DEVICE_KERNEL(softmax_backward_columns, SoftmaxArgs, 256, FLOATING);

#if PLAIT_HOST
namespace {

// Threads of columns: 32 neighbouring ones where there are so many, and lanes that read 4 elements
// each. A row that is longer than registers hold is a column of neighbours.
void share_columns(SoftmaxArgs *a) {
  RowShape &s = a->shape;
  int64_t beside = 1, lanes = 1;
  while (beside < 32 && beside < s.rows && a->inner > 1) beside *= 2;
  while (lanes < kRowThreads / beside && lanes * 4 < s.n) lanes *= 2;
  s.lanes = int32_t(lanes);
}

plait_status forward(const plait_call *c, Kind k, SoftmaxArgs a) {
  if (a.inner == 1 && a.shape.n <= kHeldRow)
    return launch(c, softmax_rows_kernel, k, a, row_blocks(a.shape), kRowThreads, 1024);
  if (a.inner == 1) {
    const int64_t bytes = long_row_bytes(c, a.shape.n, k);
    a.is_kept = bytes > 0, a.shape.lanes = kRowThreads;
    return launch(c, softmax_long_rows_kernel, k, a, row_blocks(a.shape), kRowThreads,
                  bytes ? bytes : 1024);
  }
  share_columns(&a);
  return launch(c, softmax_columns_kernel, k, a, row_blocks(a.shape), kRowThreads,
                kRowThreads * 16);
}
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
  PLAIT_TRY(is_backward ? backward(c, k, a) : forward(c, k, a));
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
