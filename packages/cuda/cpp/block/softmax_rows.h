// Softmax of rows and of columns, with a step that follows in the same pass.
#pragma once
#include "block/reduce.h"
#include "block/rows.h"
#include "block/softmax.h"

namespace plait::cuda {

struct SoftmaxArgs {
  const void *x, *grad;  // of the derivative `x` is the result of the forward pass
  void *y;
  RowShape shape;
  int64_t inner;  // columns: elements of a row are so far apart
  int32_t is_log, is_kept;
};

}  // namespace plait::cuda

#if PLAIT_KERNELS
namespace plait::cuda {

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
// What follows: `row(i)` gives a function of an element's place in row i and of its softmax.
struct Nothing {
  struct Row {
    template <class T>
    PLAIT_DEVICE T operator()(int64_t, T y) const {
      return y;
    }
  };
  PLAIT_DEVICE Row row(int64_t) const { return {}; }
};

template <class E, class Then>
PLAIT_DEVICE void softmax_of_rows(Block &t, const SoftmaxArgs &a, const Then &then) {
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
    const auto next = then.row(row);
    each_item(part.items(), [&](int k) {
      v[k] = next(part.place(k, int(16 / sizeof(E))), a.is_log ? v[k] - log : v[k] * share);
    });
    part.store(y, row * a.shape.n, v);
  }
}

template <class E, class Then>
PLAIT_DEVICE void softmax_of_long_rows(Block &t, const SoftmaxArgs &a, const Then &then) {
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
    const auto next = then.row(row);
    own.next_pass(x, base, absent, [&](int64_t i, T *v) {
#pragma unroll
      for (int e = 0; e < Row::kWidth; e++) v[e] = next(own.place(i, e), f(v[e]));
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
template <class E, class Then>
PLAIT_DEVICE void softmax_of_columns(Block &t, const SoftmaxArgs &a, const Then &then) {
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
    const auto next = then.row(p.is_column ? p.column : 0);
#pragma unroll 4
    for (int64_t i = p.lane; i < n; i += step) {
      const int64_t at = p.base + i * a.inner;
      y.store(at, narrow<E>(next(i, f(widen(x.load(at))))));
    }
  }
}

}  // namespace plait::cuda
#endif
