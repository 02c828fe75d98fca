// Batch normalisation channel by channel: how a channel lies in memory, its statistics in one
// reading, and the sums of its derivative.
#ifndef PLAIT_CORE_BATCH_NORM_H
#define PLAIT_CORE_BATCH_NORM_H
#include "kernel/integers.h"
#include "pointwise/joined_activations.h"
#include "reduction/moments.h"

namespace plait::core {

// Elements that are handled at a time: they stay in the first-level cache, and sums of so many in
// lanes of T go to float64.
constexpr int64_t kSegment = 1024;
// Columns that are handled at a time, and rows whose sums in T go to float64.
constexpr int64_t kColumns = 128, kRows = 128;

// (n, channels, run): each channel is n runs of contiguous elements.
struct Channels {
  int64_t n, channels, run;
  explicit Channels(const DLTensor *t) : n(t->shape[0]), channels(t->shape[1]), run(1) {
    for (int d = 2; d < t->ndim; d++) run *= t->shape[d];
  }
  int64_t count() const { return n * run; }
  int64_t grain() const { return kSerial / 2 / (count() + 1) + 1; }
  int64_t step() const { return channels * run; }
  // Runs are so short (one number, in rows of numbers) that vectors run along the channels.
  bool side_by_side() const { return run < 8 && run > 0 && n > 1 && channels > 1; }
};

// Calls f(first channel, their number) for blocks of channels that have kColumns columns at most.
template <class F>
PLAIT_INLINE void each_block(const plait_call *c, const Channels &s, F &&f) {
  const int64_t some = kColumns / s.run;
  parallel_ranges(c, ceil_div(s.channels, some), kSerial / 2 / (s.n * kColumns) + 1,
                  [&](int64_t begin, int64_t end) {
                    for (int64_t i = begin * some; i < least(end * some, s.channels); i += some)
                      f(i, least(some, s.channels - i));
                  });
}

// Sums of columns in float64: `add(i)` adds row i to two rows of sums in T, which lose no digits as
// they are of kRows rows at most.
template <class T, class F>
PLAIT_INLINE void each_column_sum(int64_t n, int64_t columns, double *a, double *b, T *some_a,
                                  T *some_b, F &&add) {
  for (int64_t j = 0; j < columns; j++) a[j] = b[j] = 0;
  for (int64_t i = 0; i < n; i += kRows) {
    for (int64_t j = 0; j < columns; j++) some_a[j] = some_b[j] = 0;
    for (int64_t k = i; k < least(i + kRows, n); k++) add(k);
    for (int64_t j = 0; j < columns; j++) {
      a[j] += double(some_a[j]);
      b[j] += double(some_b[j]);
    }
  }
}

// Calls f(offset, length) for the parts of a channel, at most kSegment elements each, after
// fetch(offset) for the run that comes next: runs lie far apart, where no processor looks ahead.
// The last image comes first if `backwards`: what was read last is in a cache still.
template <bool backwards, class F, class Fetch>
PLAIT_INLINE void each_segment(const Channels &s, F &&f, Fetch &&fetch) {
  for (int64_t k = 0; k < s.n; k++) {
    const int64_t i = backwards ? s.n - 1 - k : k;
    const int64_t next = backwards ? (i ? i - 1 : s.n - 1) : (i + 1 < s.n ? i + 1 : 0);
    fetch(next * s.step() + (k + 1 < s.n ? 0 : s.run));
    for (int64_t j = 0; j < s.run; j += kSegment)
      f(i * s.step() + j, s.run - j < kSegment ? s.run - j : kSegment);
  }
}

// Fetches the beginning of a run.
template <class T>
PLAIT_INLINE void fetch_run(const Channels &s, const T *p) {
  constexpr int64_t line = 64 / int64_t(sizeof(T));
  const int64_t n = s.run < 8 * line ? s.run : 8 * line;
  for (int64_t i = 0; i < n; i += line) __builtin_prefetch(p + i);
}

// The last elements of p[0..n) that do not fill a vector, in its last lanes or, where n is shorter
// than a vector, in its first ones; the other lanes are `absent`.
template <class T>
PLAIT_INLINE Vec<T> rest_of(const T *p, int64_t n, T absent) {
  constexpr int64_t w = kLanes<T>;
  if (n < w) {
    T lane[w];
    for (int64_t i = 0; i < w; i++) lane[i] = i < n ? p[i] : absent;
    return load(lane);
  }
  Vec<T> lane;
  for (int64_t i = 0; i < w; i++) lane[i] = T(i);
  return lane >= splat(T(w - n % w)) ? load(p + n - w) : splat(absent);
}

// The mean and the sum of squared differences of a channel. About kSegment elements at a time are
// summed as differences from the mean of what came before them (the first ones from the mean of
// their beginning), so that one reading does and no difference of large sums is taken.
template <class T>
class RunningMoments {
 public:
  PLAIT_INLINE void add(const T *p, int64_t n) {
    constexpr int64_t w = kLanes<T>;
    if (count_ == 0) shift_ = all_.count > 0 ? T(all_.mean) : beginning(p, n);
    int64_t i = 0;
    for (; i + 2 * w <= n; i += 2 * w) {
      take(load(p + i) - shift_, 0);
      take(load(p + i + w) - shift_, 1);
    }
    if (i + w <= n) {
      take(load(p + i) - shift_, 0);
      i += w;
    }
    if (i < n) take(rest_of(p, n, shift_) - shift_, 1);
    count_ += n;
    if (count_ >= kSegment) join();
  }
  // The moments of all that was added; .squares is not finite where sums overflow.
  const Moments &all() {
    if (count_) join();
    return all_;
  }

 private:
  PLAIT_INLINE void take(Vec<T> d, int k) {
    sum_[k] += d;
    squares_[k] = fused(d, d, squares_[k]);
  }
  void join() {
    const double n = double(count_), sum = double(sum_of<T>(sum_[0] + sum_[1]));
    const double left = double(sum_of<T>(squares_[0] + squares_[1])) - sum * sum / n;
    all_.join({n, double(shift_) + sum / n, left < 0 ? 0 : left});
    sum_[0] = sum_[1] = squares_[0] = squares_[1] = Vec<T>{};
    count_ = 0;
  }
  static T beginning(const T *p, int64_t n) {
    constexpr int64_t most = 128;
    const int64_t m = n < most ? n : most;
    double sum = 0;
    for (int64_t i = 0; i < m; i++) sum += double(p[i]);
    return T(sum / double(m));
  }

  Vec<T> sum_[2] = {}, squares_[2] = {};
  T shift_ = T(0);
  int64_t count_ = 0;
  Moments all_{0, 0, 0};
};

// The moments m of the channel at x, or again in double, which overflows later.
template <class T>
Moments finite_moments(const Channels &s, const T *x, Moments m) {
  if (PLAIT_LIKELY(m.squares - m.squares == 0)) return m;
  m = {0, 0, 0};
  each_segment<false>(
      s, [&](int64_t at, int64_t n) { m.join(moments_of_large<T>(x + at, n)); }, [](int64_t) {});
  return m;
}

template <class T>
Moments channel_moments(const Channels &s, const T *x) {
  RunningMoments<T> result;
  each_segment<false>(
      s, [&](int64_t at, int64_t n) { result.add(x + at, n); },
      [&](int64_t at) { fetch_run(s, x + at); });
  return finite_moments(s, x, result.all());
}

// The moments of adjacent columns. kSegment rows at a time are summed as differences from the mean
// of what came before them, the first ones from the mean of 16 rows: so no variance is less than
// 1/64 of the mean square of these differences.
template <class T>
void column_moments(const Channels &s, const T *x, int64_t columns, Moments *all) {
  T shift[kColumns], sum[kColumns], squares[kColumns];
  double sums[kColumns], totals[kColumns];
  for (int64_t j = 0; j < columns; j++) all[j] = {0, 0, 0}, shift[j] = 0;
  const int64_t some = least(16, s.n);
  for (int64_t i = 0; i < some; i++)
    for (int64_t j = 0; j < columns; j++) shift[j] += x[i * s.step() + j] / T(some);
  for (int64_t i = 0; i < s.n; i += kSegment) {
    const int64_t rows = least(kSegment, s.n - i);
    each_column_sum(rows, columns, sums, totals, sum, squares, [&](int64_t k) {
      const T *p = x + (i + k) * s.step();
#pragma GCC ivdep
      for (int64_t j = 0; j < columns; j++) {
        const T d = p[j] - shift[j];
        sum[j] += d;
        squares[j] = fused(d, d, squares[j]);
      }
    });
    const double n = double(rows);
    for (int64_t j = 0; j < columns; j++) {
      const double left = totals[j] - sums[j] * sums[j] / n;
      all[j].join({n, double(shift[j]) + sums[j] / n, left < 0 ? 0 : left});
      shift[j] = T(all[j].mean);
    }
  }
}

// The moments of channel k of a block at x, of which `all` has the columns.
template <class T>
Moments joined_moments(const Channels &s, const T *x, const Moments *all, int64_t k) {
  Moments m = all[k * s.run];
  for (int64_t j = 1; j < s.run; j++) m.join(all[k * s.run + j]);
  return finite_moments(s, x + k * s.run, m);
}

// The sums of g and of g (x - mean) over a channel.
template <class T>
class GradientSums {
 public:
  double grad = 0, product = 0;

  PLAIT_INLINE void add(const T *g, const T *x, T mean, int64_t n) {
    constexpr int64_t w = kLanes<T>;
    int64_t i = 0;
    for (; i + 2 * w <= n; i += 2 * w) {
      take(load(g + i), load(x + i) - mean, 0);
      take(load(g + i + w), load(x + i + w) - mean, 1);
    }
    if (i + w <= n) {
      take(load(g + i), load(x + i) - mean, 0);
      i += w;
    }
    if (i < n) take(rest_of(g, n, T(0)), rest_of(x, n, mean) - mean, 1);
    count_ += n;
    if (count_ >= kSegment) join();
  }
  void join() {
    grad += double(sum_of<T>(sum_[0] + sum_[1]));
    product += double(sum_of<T>(product_[0] + product_[1]));
    sum_[0] = sum_[1] = product_[0] = product_[1] = Vec<T>{};
    count_ = 0;
  }

 private:
  PLAIT_INLINE void take(Vec<T> g, Vec<T> d, int k) {
    sum_[k] += g;
    product_[k] = fused(g, d, product_[k]);
  }
  Vec<T> sum_[2] = {}, product_[2] = {};
  int64_t count_ = 0;
};

// A channel's factors: normalised(x) = (x - mean) * scale + shift.
template <class T>
struct Affine {
  T mean, scale, shift;
  PLAIT_INLINE T operator()(T x) const { return fused(x - mean, scale, shift); }
  PLAIT_INLINE const Affine &at(int64_t) const { return *this; }
};

// The factors of adjacent columns.
template <class T>
struct AffineRow {
  const T *mean, *scale, *shift;
  PLAIT_INLINE Affine<T> at(int64_t j) const { return {mean[j], scale[j], shift[j]}; }
};
template <class T>
struct AffineColumns {
  T mean[kColumns], scale[kColumns], shift[kColumns];
  void put(int64_t from, int64_t n, const Affine<T> &f) {
    for (int64_t j = from; j < from + n; j++)
      mean[j] = f.mean, scale[j] = f.scale, shift[j] = f.shift;
  }
  AffineRow<T> row() const { return {mean, scale, shift}; }
};

}  // namespace plait::core
#endif  // PLAIT_CORE_BATCH_NORM_H
