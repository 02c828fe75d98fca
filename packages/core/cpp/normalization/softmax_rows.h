// Sums of exponentials over contiguous rows, shared by softmax and the losses.
#ifndef PLAIT_CORE_SOFTMAX_ROWS_H
#define PLAIT_CORE_SOFTMAX_ROWS_H
#include "kernel/fused.h"
#include "pointwise/math.h"
#include "reduction/rows.h"

namespace plait::core {

namespace math = scalar::math;

// exp(x) for x <= 0, or little more, but 0 where that would be subnormal. Half of the instructions
// of math::exp are for other arguments; of float32 the bits are the same. The last step is a
// product, as no NaN is lost in it.
PLAIT_INLINE Vec<float> exp_below(Vec<float> x) {
  typedef __typeof__(x < x) Integers;
  const Vec<float> t = fused(x, splat(math::kLog2e), splat(math::kRound)),
                   k = splat(math::kRound) - t;  // minus the nearest power of two
  const Vec<float> r = fused(k, splat(math::kLn2Lo), fused(k, splat(math::kLn2Hi), x));
  Vec<float> q = splat(0.001395169736f);
  q = fused(q, r, splat(0.008369598334f));
  q = fused(q, r, splat(0.04166618764f));
  q = fused(q, r, splat(0.1666651289f));
  q = fused(q, r, splat(0.5000000101f));
  const Vec<float> p = splat(1.0f) + fused(r * r, q, r);
  const Vec<float> scaled = p * Vec<float>((Integers(t) << 23) + (127 << 23));
  return x < splat(-87.33f) ? Vec<float>{} : scaled;
}
// The same with the terms of the series up to r^13 / 13!, the last of which is below 1e-16.
PLAIT_INLINE Vec<double> exp_below(Vec<double> x) {
  typedef __typeof__(x < x) Integers;
  constexpr double factors[] = {1 / 479001600.0, 1 / 39916800.0, 1 / 3628800.0, 1 / 362880.0,
                                1 / 40320.0,     1 / 5040.0,     1 / 720.0,     1 / 120.0,
                                1 / 24.0,        1 / 6.0,        1 / 2.0};
  constexpr double round = 0x1.8p52;
  const Vec<double> t = fused(x, splat(1.4426950408889634), splat(round)), k = splat(round) - t;
  const Vec<double> r = fused(k, splat(0x1.a39ef35793c76p-33),
                              fused(k, splat(0x1.62e42feep-1), x));  // ln 2 in two parts
  Vec<double> q = splat(1 / 6227020800.0);
  for (const double f : factors) q = fused(q, r, splat(f));
  const Vec<double> p = splat(1.0) + fused(r * r, q, r);
  const Vec<double> scaled = p * Vec<double>((Integers(t) << 52) + (int64_t(1023) << 52));
  return x < splat(-708.0) ? Vec<double>{} : scaled;
}
// out = exp(x - shift), no x being much larger than shift
template <class T>
PLAIT_INLINE void exp_row(const T *x, T shift, int64_t n, T *out) {
  constexpr int64_t w = kLanes<T>;
  int64_t i = 0;
  for (; i + w <= n; i += w) store(out + i, exp_below(load(x + i) - splat(shift)));
  if (i == n) return;
  T rest[w] = {};
  memcpy(rest, x + i, size_t(n - i) * sizeof(T));
  store(rest, exp_below(load(rest) - splat(shift)));
  memcpy(out + i, rest, size_t(n - i) * sizeof(T));
}
template <class T>
T largest(const T *x, int64_t n) {
  return reduce_contiguous<Max, T, T>(x, n);
}
template <class T>
T total(const T *x, int64_t n) {
  return T(reduce_contiguous<Sum, T>(x, n));
}

// The same, and their sum.
template <class T>
T exp_row_total(const T *x, T shift, int64_t n, T *out) {
  typename Collected<T>::type sum = 0;
  for (int64_t i = 0; i < n; i += kBlockOf) {
    const int64_t m = n - i < kBlockOf ? n - i : kBlockOf;
    exp_row(x + i, shift, m, out + i);
    sum += reduce_contiguous<Sum, T>(out + i, m);
  }
  return T(sum);
}

constexpr int64_t kShort = 256;

// A row of up to kShort elements as whole vectors, padded with -inf. If the row is no whole number
// of vectors, but as long as one, its last vector has the row's last elements: those that are in
// the vector before it too are padding.
template <class T>
class ShortRow {
  static constexpr int64_t w = kLanes<T>;

 public:
  ShortRow(const T *x, int64_t n) : n_(n), rest_(n % w), vectors_(ceil_div(n, w)) {
    Vec<T> top = splat(-T(math::kInf));
    auto nan = top != top;
    for (int64_t i = 0; i + w <= n; i += w) {
      const Vec<T> v = load(x + i);
      store(data_ + i, v);
      top = Max::pick(top, v);
      nan |= v != v;
    }
    if (rest_) {
      T *last = data_ + (vectors_ - 1) * w;
      if (n >= w) {
        const Vec<T> v = load(x + n - w), none = splat(-T(math::kInf));
        store(last, lane_numbers() < splat(T(w - rest_)) ? none : v);
      } else {
        for (int64_t i = 0; i < w; i++) last[i] = i < n ? x[i] : -T(math::kInf);
      }
      top = Max::step(top, load(last));
    }
    top_ = in_every_lane<Max, T>(nan ? splat(T(math::kNan)) : top);
  }
  T largest() const { return top_[0]; }
  // Replaces x by exp(x - the largest element). In every lane: their sum.
  Vec<T> exp() {
    Vec<T> sum = {};
    for (int64_t k = 0; k < vectors_; k++) {
      const Vec<T> v = exp_below(load(data_ + k * w) - top_);
      store(data_ + k * w, v);
      sum += v;
    }
    return in_every_lane<Sum, T>(sum);
  }
  // Writes all elements times `factor`.
  void write(Vec<T> factor, T *out) const {
    const T *last = data_ + (vectors_ - 1) * w;
    if (rest_ && n_ >= w) store(out + n_ - w, load(last) * factor);
    for (int64_t i = 0; i + w <= n_; i += w) store(out + i, load(data_ + i) * factor);
    if (n_ < w)
      for (int64_t i = 0; i < n_; i++) out[i] = last[i] * factor[0];
  }

 private:
  static PLAIT_INLINE Vec<T> lane_numbers() {
    if constexpr (w == 8) {
      return Vec<T>{0, 1, 2, 3, 4, 5, 6, 7};
    } else {
      return Vec<T>{0, 1, 2, 3};
    }
  }
  int64_t n_, rest_, vectors_;
  Vec<T> top_;
  alignas(64) T data_[kShort];
};

// log(sum(exp(x))) in two parts: their sum would lose the second where numbers are large.
template <class T>
struct LogSum {
  T top, rest;  // the largest number, and the logarithm of sum(exp(x - top))
  T value() const {  // a row of -inf gives -inf
    return top == -T(math::kInf) || top == T(math::kInf) ? top : top + rest;
  }
};
// As ShortRow has them, with the same bits, of a row of V whole vectors: they stay in registers.
template <int64_t V, class T>
PLAIT_INLINE LogSum<T> exp_sum_of_vectors(const T *x) {
  Vec<T> v[V], top = splat(-T(math::kInf)), sum = {};
  auto nan = top != top;
  PLAIT_UNROLL for (int64_t k = 0; k < V; k++) {
    v[k] = load(x + k * kLanes<T>);
    top = Max::pick(top, v[k]);
    nan |= v[k] != v[k];
  }
  top = in_every_lane<Max, T>(nan ? splat(T(math::kNan)) : top);
  PLAIT_UNROLL for (int64_t k = 0; k < V; k++) sum += exp_below(v[k] - top);
  return {top[0], in_every_lane<Sum, T>(sum)[0]};
}
// Of a row that is read in blocks: read(i, m) gives elements i, i + 1, ..., i + m - 1.
template <class T, class Read>
PLAIT_INLINE LogSum<T> exp_sum_of_blocks(int64_t n, const Read &read) {
  T top = Max::start<T>();
  for (int64_t i = 0; i < n; i += kBlockOf) {
    const int64_t m = n - i < kBlockOf ? n - i : kBlockOf;
    top = Max::step(top, largest(read(i, m), m));
  }
  T part[kBlockOf];  // stays in the first-level cache
  typename Collected<T>::type sum = 0;
  for (int64_t i = 0; i < n; i += kBlockOf) {
    const int64_t m = n - i < kBlockOf ? n - i : kBlockOf;
    exp_row(read(i, m), top, m, part);
    sum += reduce_contiguous<Sum, T>(part, m);
  }
  return {top, T(sum)};
}
// In two steps, as logarithms of several rows take no longer than one: `rest` is the sum first.
template <class T>
LogSum<T> exp_sum(const T *x, int64_t n) {
  if (n == kLanes<T>) return exp_sum_of_vectors<1>(x);
  if (n == 2 * kLanes<T>) return exp_sum_of_vectors<2>(x);
  if (n == 4 * kLanes<T>) return exp_sum_of_vectors<4>(x);
  if (n && n <= kShort) {
    ShortRow<T> row(x, n);
    return {row.largest(), row.exp()[0]};
  }
  return exp_sum_of_blocks<T>(n, [x](int64_t i, int64_t) { return x + i; });
}
template <class T>
LogSum<T> log_sum(const T *x, int64_t n) {
  const LogSum<T> sum = exp_sum(x, n);
  return {sum.top, math::log(sum.rest)};
}

}  // namespace plait::core
#endif  // PLAIT_CORE_SOFTMAX_ROWS_H
