// Sums of exponentials, and rows of elements that threads hold in registers.
#pragma once
#include "block/reduce.h"

namespace plait::cuda {

constexpr int kRowItems = 16;  // elements of a row that a thread holds at most

// How the rows of dense tensors are shared: `lanes` threads, a power of 2, hold a row.
struct RowShape {
  int64_t rows, n;  // and elements of a row
  int32_t lanes;
  int32_t is_vector;  // rows are read 16 bytes at a time
};

}  // namespace plait::cuda

#if PLAIT_KERNELS
namespace plait::cuda {

// log(sum(exp(x))) as the largest number and the sum of exp(x - that).
template <class T>
struct LogSum {
  T top, sum;
};
template <class T>
PLAIT_DEVICE T finite_or_zero(T x) {
  return x - x == T(0) ? x : T(0);
}
template <class T>
PLAIT_DEVICE LogSum<T> no_log_sum() {
  return {-T(scalar::math::kInf), T(0)};
}
// The sum of exponentials of differences from another base.
template <class T>
PLAIT_DEVICE T sum_from(const LogSum<T> &v, T base) {
  return v.sum == T(0) ? T(0) : v.sum * scalar::math::exp(finite_or_zero(v.top) - base);
}
template <class T>
PLAIT_DEVICE LogSum<T> join_log_sums(const LogSum<T> &a, const LogSum<T> &b) {
  const T top = a.top > b.top ? a.top : b.top, base = finite_or_zero(top);
  return {top, sum_from(a, base) + sum_from(b, base)};
}
// Of N numbers, a power of 2, which are overwritten.
template <int N, class T>
PLAIT_DEVICE LogSum<T> log_sum_of(T *x) {
  T top = -T(scalar::math::kInf);
#pragma unroll
  for (int k = 0; k < N; k++) top = x[k] > top ? x[k] : top;
  const T base = finite_or_zero(top);
#pragma unroll
  for (int k = 0; k < N; k++) x[k] = scalar::math::exp(x[k] - base);
#pragma unroll
  for (int half = N / 2; half > 0; half /= 2) {
#pragma unroll
    for (int k = 0; k < half; k++) x[k] += x[k + half];
  }
  return {top, x[0]};
}
// log(sum(exp(x)))
template <class T>
PLAIT_DEVICE T value_of(const LogSum<T> &v) {
  const bool infinite = v.top - v.top != T(0) && v.sum == v.sum;
  return infinite ? v.top : finite_or_zero(v.top) + scalar::math::log(v.sum);
}

// The elements of a row that one thread holds.
class RowPart {
 public:
  PLAIT_DEVICE RowPart(const RowShape &s, int lane, int width)
      : n_(s.n), lanes_(s.lanes), lane_(lane), is_vector_(s.is_vector) {
    const int64_t each = int64_t(s.lanes) * (is_vector_ ? width : 1);
    items_ = int((s.n + each - 1) / each) * (is_vector_ ? width : 1);
  }
  // How many elements a thread holds, the same for all threads of the row.
  PLAIT_DEVICE int items() const { return items_; }

  // Reads elements of the row at `base`; those behind its end are `absent`.
  template <class E>
  PLAIT_DEVICE void load(const Global<const E> &x, int64_t base, Compute<E> absent,
                         Compute<E> *to) const {
    constexpr int kWidth = int(16 / sizeof(E));
    if (is_vector_) {
#pragma unroll
      for (int u = 0; u < kRowItems / kWidth; u++) {
        const int64_t at = (int64_t(u) * lanes_ + lane_) * kWidth;
        Vector<E, kWidth> v;
        if (at < n_) v = x.template load_vector<kWidth>(base + at);
#pragma unroll
        for (int e = 0; e < kWidth; e++) to[u * kWidth + e] = at < n_ ? widen(v.at[e]) : absent;
      }
      return;
    }
#pragma unroll
    for (int k = 0; k < kRowItems; k++) {
      const int64_t at = int64_t(k) * lanes_ + lane_;
      to[k] = at < n_ ? widen(x.load(base + at)) : absent;
    }
  }
  template <class E>
  PLAIT_DEVICE void store(const Global<E> &y, int64_t base, const Compute<E> *from) const {
    constexpr int kWidth = int(16 / sizeof(E));
    if (is_vector_) {
#pragma unroll
      for (int u = 0; u < kRowItems / kWidth; u++) {
        const int64_t at = (int64_t(u) * lanes_ + lane_) * kWidth;
        Vector<E, kWidth> v;
#pragma unroll
        for (int e = 0; e < kWidth; e++) v.at[e] = narrow<E>(from[u * kWidth + e]);
        if (at < n_) y.template store_vector<kWidth>(base + at, v);
      }
      return;
    }
#pragma unroll
    for (int k = 0; k < kRowItems; k++) {
      const int64_t at = int64_t(k) * lanes_ + lane_;
      if (at < n_) y.store(base + at, narrow<E>(from[k]));
    }
  }

 private:
  int64_t n_;
  int lanes_, lane_, items_;
  bool is_vector_;
};

// A step for each element that a thread holds: f(k).
template <class F>
PLAIT_DEVICE void each_item(int items, F f) {
#pragma unroll
  for (int k = 0; k < kRowItems; k++)
    if (k < items) f(k);
}

// Joins values of the `lanes` threads of a row; each of them gets the result. The step is
// commutative. `room` has a value for each warp, and is free again afterwards.
template <class P, class Step>
PLAIT_DEVICE P reduce_row(Block &t, P value, int lanes, Shared<P> room, Step step) {
  value = reduce_lanes(t, value, lanes < kWarp ? lanes : kWarp, step);
  if (lanes <= kWarp) return value;
  if (t.lane() == 0) room.store(t.warp(), value);
  t.barrier();
  const int warps = lanes / kWarp, first = t.warp() / warps * warps;
  value = room.load(first);
  for (int w = 1; w < warps; w++) value = step(value, room.load(first + w));
  t.barrier();
  return value;
}

struct Larger {
  template <class T>
  PLAIT_DEVICE T operator()(T a, T b) const {
    return b > a ? b : a;
  }
};
struct Plus {
  template <class T>
  PLAIT_DEVICE T operator()(T a, T b) const {
    return a + b;
  }
};

}  // namespace plait::cuda
#endif
