// Rows of dense tensors: what one thread holds in registers, or a block in shared memory.
#pragma once
#include "block/reduce.h"

namespace plait::cuda {

constexpr int kRowItems = 16;  // elements of a row that a thread holds at most
constexpr int kLongRowThreads = 512;
constexpr int64_t kLongRowMargin = 8 * kLongRowThreads;  // places behind a row in shared memory

// How the rows of dense tensors are shared: `lanes` threads, a power of 2, hold a row.
struct RowShape {
  int64_t rows, n;  // and elements of a row
  int32_t lanes;
  int32_t is_vector;  // rows are read 16 bytes at a time
};

}  // namespace plait::cuda

#if PLAIT_KERNELS
namespace plait::cuda {

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

  // The place of element k in the row.
  PLAIT_DEVICE int64_t place(int k, int width) const {
    return is_vector_ ? (int64_t(k / width) * lanes_ + lane_) * width + k % width
                      : int64_t(k) * lanes_ + lane_;
  }
  PLAIT_DEVICE bool is_inside(int k, int width) const { return place(k, width) < n_; }

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

// A row that is the work of one block. The first pass over it may keep its elements in shared
// memory, each where the thread that has it reads it again.
template <class E>
class LongRow {
 public:
  using T = Compute<E>;
  static constexpr int kWidth = int(16 / sizeof(E));
  // `is_kept`: shared memory has room for long_row_bytes
  PLAIT_DEVICE LongRow(Block &t, const RowShape &s, bool is_kept)
      : t_(t),
        kept_(t.shared<T>(is_kept ? s.n + kLongRowMargin : 1)),
        n_(s.n),
        is_vector_(s.is_vector),
        is_kept_(is_kept) {}

  // Calls f(i, v) for kWidth elements v at a time; those behind the row's end are `absent`. Two
  // reads are under way at once.
  template <class F>
  PLAIT_DEVICE void first_pass(const Global<const E> &x, int64_t base, T absent, F f) const {
    const int64_t step = int64_t(t_.threads()) * kWidth;
    int64_t own = t_.thread();
    for (int64_t i = begin(); i < n_; i += 2 * step, own += 2 * step) {
      T v[kWidth], w[kWidth];
      const bool has_next = i + step < n_;
      load(x, base, i, absent, v);
      if (has_next) load(x, base, i + step, absent, w);
      keep(own, v);
      f(i, v);
      if (!has_next) continue;
      keep(own + step, w);
      f(i + step, w);
    }
  }
  // Reads the row once more, after `first_pass`, which may have kept it.
  template <class F>
  PLAIT_DEVICE void next_pass(const Global<const E> &x, int64_t base, T absent, F f) const {
    if (!is_kept_) return first_pass(x, base, absent, f);
    const int64_t step = int64_t(t_.threads()) * kWidth;
    int64_t own = t_.thread();
    for (int64_t i = begin(); i < n_; i += step, own += step) {
      T v[kWidth];
#pragma unroll
      for (int e = 0; e < kWidth; e++)
        v[e] = place(i, e) < n_ ? kept_.load(own + e * t_.threads()) : absent;
      f(i, v);
    }
  }
  // Reads the elements of another row at the places of those of i.
  PLAIT_DEVICE void load(const Global<const E> &x, int64_t base, int64_t i, T absent, T *to) const {
    if (is_vector_) {
      const auto v = x.template load_vector<kWidth>(base + i);
#pragma unroll
      for (int e = 0; e < kWidth; e++) to[e] = widen(v.at[e]);
      return;
    }
#pragma unroll
    for (int e = 0; e < kWidth; e++)
      to[e] = place(i, e) < n_ ? widen(x.load(base + place(i, e))) : absent;
  }
  PLAIT_DEVICE void store(const Global<E> &y, int64_t base, int64_t i, const T *from) const {
    if (is_vector_) {
      Vector<E, kWidth> v;
#pragma unroll
      for (int e = 0; e < kWidth; e++) v.at[e] = narrow<E>(from[e]);
      y.template store_vector<kWidth>(base + i, v);
      return;
    }
#pragma unroll
    for (int e = 0; e < kWidth; e++)
      if (place(i, e) < n_) y.store(base + place(i, e), narrow<E>(from[e]));
  }

  // The place of element e of those that begin at i.
  PLAIT_DEVICE int64_t place(int64_t i, int e) const {
    return is_vector_ ? i + e : i + int64_t(e) * t_.threads();
  }

 private:
  PLAIT_DEVICE int64_t begin() const { return is_vector_ ? t_.thread() * kWidth : t_.thread(); }
  PLAIT_DEVICE void keep(int64_t own, const T *v) const {
    if (!is_kept_) return;
#pragma unroll
    for (int e = 0; e < kWidth; e++) kept_.store(own + e * t_.threads(), v[e]);
  }
  Block &t_;
  Shared<T> kept_;
  int64_t n_;
  bool is_vector_, is_kept_;
};

}  // namespace plait::cuda
#endif
