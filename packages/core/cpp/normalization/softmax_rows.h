// Sums of exponentials over contiguous rows, shared by softmax and the losses.
#ifndef PLAIT_CORE_SOFTMAX_ROWS_H
#define PLAIT_CORE_SOFTMAX_ROWS_H
#include "pointwise/math.h"
#include "reduction/rows.h"

namespace plait::core {

namespace math = scalar::math;

// out = exp(x - shift)
template <class T>
PLAIT_INLINE void exp_row(const T *x, T shift, int64_t n, T *out) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; i++) out[i] = math::exp(x[i] - shift);
}
template <class T>
T largest(const T *x, int64_t n) {
  return reduce_contiguous<Max, T, T>(x, n);
}
template <class T>
T total(const T *x, int64_t n) {
  return T(reduce_contiguous<Sum, T>(x, n));
}

constexpr int64_t kShort = 64;

// A row of up to kShort elements as whole vectors, padded with -inf. If the row is no whole number
// of vectors, but as long as one, its last vector has the row's last elements: those that are in
// the vector before it too are padding.
template <class T>
class ShortRow {
  static constexpr int64_t w = kLanes<T>;

 public:
  ShortRow(const T *x, int64_t n) : n_(n), rest_(n % w), vectors_(ceil_div(n, w)) {
    Vec<T> top = splat(-T(math::kInf));
    for (int64_t i = 0; i + w <= n; i += w) {
      const Vec<T> v = load(x + i);
      store(data_ + i, v);
      top = Max::step(top, v);
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
    top_ = in_every_lane<Max, T>(top);
  }
  T largest() const { return top_[0]; }
  // Replaces x by exp(x - the largest element). In every lane: their sum.
  Vec<T> exp() {
    exp_row(data_, largest(), vectors_ * w, data_);
    Vec<T> sum = load(data_);
    for (int64_t k = 1; k < vectors_; k++) sum += load(data_ + k * w);
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
// In two steps, as logarithms of several rows take no longer than one: `rest` is the sum first.
template <class T>
LogSum<T> exp_sum(const T *x, int64_t n, T *scratch) {
  if (n && n <= kShort) {
    ShortRow<T> row(x, n);
    return {row.largest(), row.exp()[0]};
  }
  const T top = largest(x, n);
  exp_row(x, top, n, scratch);
  return {top, total(scratch, n)};
}
template <class T>
LogSum<T> log_sum(const T *x, int64_t n, T *scratch) {
  const LogSum<T> sum = exp_sum(x, n, scratch);
  return {sum.top, math::log(sum.rest)};
}

}  // namespace plait::core
#endif  // PLAIT_CORE_SOFTMAX_ROWS_H
