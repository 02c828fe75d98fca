// Steps of reductions, and the reduction of one run of elements.
#ifndef PLAIT_CORE_ROWS_H
#define PLAIT_CORE_ROWS_H
#include <type_traits>

#include "kernel/vec.h"

namespace plait::core {

// elements that are reduced in lanes of T before the lanes are combined
constexpr int64_t kBlockOf = 1024;

template <class T>
struct Collected {  // the type in which partial results of T are combined
  using type = T;
};
template <>
struct Collected<float> {
  using type = double;
};

struct Sum {
  static constexpr bool kNanWins = false;
  template <class T>
  static constexpr T start() {
    return T(0);
  }
  template <class V>
  static PLAIT_INLINE V step(V a, V x) {
    return a + x;
  }
};
struct Product {
  static constexpr bool kNanWins = false;
  template <class T>
  static constexpr T start() {
    return T(1);
  }
  template <class V>
  static PLAIT_INLINE V step(V a, V x) {
    return a * x;
  }
};
template <class T>
constexpr T lowest() {
  if constexpr (is_float<T>) return -T(__builtin_inff());
  if constexpr (T(-1) > T(0)) return T(0);
  if constexpr (!is_float<T>) return T(uint64_t(1) << (sizeof(T) * 8 - 1));
}
template <class T>
constexpr T highest() {
  if constexpr (is_float<T>) return T(__builtin_inff());
  if constexpr (!is_float<T>) return T(~lowest<T>());
}
struct Max {
  static constexpr bool kNanWins = true;
  template <class T>
  static constexpr T start() {
    return lowest<T>();
  }
  template <class V>
  static PLAIT_INLINE V step(V a, V x) {
    return (x > a) | (x != x) ? x : a;
  }
  template <class V>
  static PLAIT_INLINE V pick(V a, V x) {  // one instruction, which may lose a NaN
    return x > a ? x : a;
  }
};
struct Min {
  static constexpr bool kNanWins = true;
  template <class T>
  static constexpr T start() {
    return highest<T>();
  }
  template <class V>
  static PLAIT_INLINE V step(V a, V x) {
    return (x < a) | (x != x) ? x : a;
  }
  template <class V>
  static PLAIT_INLINE V pick(V a, V x) {
    return x < a ? x : a;
  }
};

template <class Op, class T, class P = typename Collected<T>::type>
PLAIT_INLINE P collect_lanes(Vec<T> v) {
  T lane[kLanes<T>];
  P r[kLanes<T>];
  memcpy(lane, &v, 32);
  for (int64_t i = 0; i < kLanes<T>; i++) r[i] = P(lane[i]);
  for (int64_t half = kLanes<T> / 2; half; half /= 2)
    for (int64_t i = 0; i < half; i++) r[i] = Op::step(r[i], r[i + half]);
  return r[0];
}

template <class V>
PLAIT_INLINE bool any_bit(V mask) {
  uint64_t part[4];
  memcpy(part, &mask, 32);
  return part[0] | part[1] | part[2] | part[3];
}

// Elements are read from a `From`: const T *, or WidenedRun.

template <class T, class From>
bool any_nan(From p, int64_t n) {  // n: a multiple of the lanes
  auto nan = load(p) != load(p);
  for (int64_t i = kLanes<T>; i < n; i += kLanes<T>) nan |= load(p + i) != load(p + i);
  return any_bit(nan);
}

// Reduces m elements, a multiple of four vectors.
template <class Op, class T, class P, class From>
PLAIT_INLINE P reduce_block(From p, int64_t m) {
  constexpr int64_t w = kLanes<T>;
  Vec<T> a = load(p), b = load(p + w), c = load(p + 2 * w), d = load(p + 3 * w);
  for (int64_t i = 4 * w; i < m; i += 4 * w) {
    a = Op::step(a, load(p + i));
    b = Op::step(b, load(p + i + w));
    c = Op::step(c, load(p + i + 2 * w));
    d = Op::step(d, load(p + i + 3 * w));
  }
  return collect_lanes<Op, T, P>(Op::step(Op::step(a, b), Op::step(c, d)));
}

// The same reduction for steps that may lose a NaN, where a NaN must be the result: a sum of the
// elements is NaN if there is one. The sum is also NaN for infinities of both signs, so the
// elements are searched then.
template <class Op, class T, class P, class From>
PLAIT_INLINE P extreme_block(From p, int64_t m) {
  constexpr int64_t w = kLanes<T>;
  Vec<T> a = load(p), b = load(p + w), c = load(p + 2 * w), d = load(p + 3 * w);
  Vec<T> sum_a = a, sum_b = b, sum_c = c, sum_d = d;
  for (int64_t i = 4 * w; i < m; i += 4 * w) {
    const Vec<T> e = load(p + i), f = load(p + i + w), g = load(p + i + 2 * w),
                 h = load(p + i + 3 * w);
    a = Op::pick(a, e);
    b = Op::pick(b, f);
    c = Op::pick(c, g);
    d = Op::pick(d, h);
    sum_a += e;
    sum_b += f;
    sum_c += g;
    sum_d += h;
  }
  const Vec<T> sum = (sum_a + sum_b) + (sum_c + sum_d);
  if (any_bit(sum != sum) && any_nan<T>(p, m)) return P(__builtin_nan(""));
  const Vec<T> best = Op::pick(Op::pick(a, b), Op::pick(c, d));
  T lane[w];
  memcpy(lane, &best, 32);
  for (int64_t half = w / 2; half; half /= 2)
    for (int64_t i = 0; i < half; i++) lane[i] = Op::pick(lane[i], lane[i + half]);
  return P(lane[0]);
}

// The step of `result` with n elements, fewer than four vectors: whole vectors, then the rest.
template <class Op, class T, class P, class From>
PLAIT_INLINE P reduce_rest(P result, From p, int64_t n) {
  constexpr int64_t w = kLanes<T>;
  int64_t i = 0;
  if (n >= w) {
    Vec<T> some = load(p);
    for (i = w; i + w <= n; i += w) some = Op::step(some, load(p + i));
    result = Op::step(result, collect_lanes<Op, T, P>(some));
  }
  for (; i < n; i++) result = Op::step(result, P(p[i]));
  return result;
}

template <class Op, class T, class P = typename Collected<T>::type, class From = const T *>
P reduce_contiguous(From p, int64_t n) {
  constexpr int64_t w = kLanes<T>;
  P result = Op::template start<P>();
  while (n >= 4 * w) {
    const int64_t m = n < kBlockOf ? n & ~(4 * w - 1) : kBlockOf;
    if constexpr (is_float<T> && Op::kNanWins)
      result = Op::step(result, extreme_block<Op, T, P>(p, m));
    else
      result = Op::step(result, reduce_block<Op, T, P>(p, m));
    p += m;
    n -= m;
  }
  return reduce_rest<Op, T, P>(result, p, n);
}

// Reduces rows of at least 4 integers of 8 bytes: four rows at once, a vector each, which are
// transposed at the end.
template <class Op, class T>
void reduce_rows_of_vectors(const T *p, int64_t apart, int64_t n, int64_t rows, T *results) {
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4, p += 4 * apart) {
    Vec<T> v[4];
    PLAIT_UNROLL for (int k = 0; k < 4; k++) v[k] = load(p + k * apart);
    int64_t i = 4;
    for (; i + 4 <= n; i += 4)
      PLAIT_UNROLL for (int k = 0; k < 4; k++) v[k] = Op::step(v[k], load(p + k * apart + i));
    const Vec<T> a = Op::step(shuffled<0, 4, 2, 6>(v[0], v[1]), shuffled<1, 5, 3, 7>(v[0], v[1])),
                 b = Op::step(shuffled<0, 4, 2, 6>(v[2], v[3]), shuffled<1, 5, 3, 7>(v[2], v[3]));
    T one[4];
    store(one, Op::step(shuffled<0, 1, 4, 5>(a, b), shuffled<2, 3, 6, 7>(a, b)));
    for (int64_t k = 0; k < 4; k++) {
      for (int64_t j = i; j < n; j++) one[k] = Op::step(one[k], p[k * apart + j]);
      results[r + k] = one[k];
    }
  }
  for (; r < rows; r++, p += apart) results[r] = reduce_contiguous<Op, T, T>(p, n);
}

// Results of `rows` rows of fewer elements than a vector has, `apart` elements from each other:
// side by side, as a row alone would be a chain of steps. They are those of reduce_run.
template <class Op, class T, class P>
void reduce_short_rows(const T *p, int64_t apart, int64_t n, int64_t rows, P *results) {
  if constexpr (std::is_integral_v<T> && kLanes<T> == 4) {
    if (n >= 4) return reduce_rows_of_vectors<Op>(p, apart, n, rows, results);
  }
  for (int64_t i = 0; i < rows; i++) results[i] = Op::template start<P>();
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < rows; i++) results[i] = Op::step(results[i], P(p[i * apart + j]));
}

template <class Op, class T, class P = typename Collected<T>::type>
P reduce_run(const T *p, int64_t n, int64_t step) {
  if (step == 1) return reduce_contiguous<Op, T>(p, n);
  P a = Op::template start<P>(), b = a;
  int64_t i = 0;
  for (; i + 2 <= n; i += 2) {
    a = Op::step(a, P(p[i * step]));
    b = Op::step(b, P(p[(i + 1) * step]));
  }
  if (i < n) a = Op::step(a, P(p[i * step]));
  return Op::step(a, b);
}

}  // namespace plait::core
#endif  // PLAIT_CORE_ROWS_H
