// Steps of reductions, and what they make of one run of elements.
#ifndef PLAIT_CORE_ROWS_H
#define PLAIT_CORE_ROWS_H
#include "kernels/vec.h"

namespace plait::core {

constexpr int64_t kBlockOf = 1024;  // elements that lanes of T collect before they are put together

template <class T>
struct Collected {  // what partial results of T are put together in
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
  memcpy(lane, &v, 32);
  P r = P(lane[0]);
  for (int64_t i = 1; i < kLanes<T>; i++) r = Op::step(r, P(lane[i]));
  return r;
}

template <class V>
PLAIT_INLINE bool any_bit(V mask) {
  uint64_t part[4];
  memcpy(part, &mask, 32);
  return part[0] | part[1] | part[2] | part[3];
}

// Where NaN wins, steps may lose it and it is looked for beside them: half the instructions.
template <class Op, class T, class P = typename Collected<T>::type>
P reduce_contiguous(const T *p, int64_t n) {
  constexpr int64_t w = kLanes<T>;
  constexpr bool apart = is_float<T> && Op::kNanWins;
  auto next = [](Vec<T> a, Vec<T> x) {
    if constexpr (apart)
      return Op::pick(a, x);
    else
      return Op::step(a, x);
  };
  P result = Op::template start<P>();
  while (n >= 4 * w) {
    const int64_t m = n < kBlockOf ? n & ~(4 * w - 1) : kBlockOf;
    Vec<T> a = load(p), b = load(p + w), c = load(p + 2 * w), d = load(p + 3 * w);
    auto nan = (a != a) | (b != b) | (c != c) | (d != d);
    for (int64_t i = 4 * w; i < m; i += 4 * w) {
      const Vec<T> e = load(p + i), f = load(p + i + w), g = load(p + i + 2 * w),
                   h = load(p + i + 3 * w);
      a = next(a, e);
      b = next(b, f);
      c = next(c, g);
      d = next(d, h);
      if constexpr (apart) nan |= (e != e) | (f != f) | (g != g) | (h != h);
    }
    if constexpr (apart)
      if (any_bit(nan)) return P(__builtin_nan(""));
    result = Op::step(result, collect_lanes<Op, T, P>(Op::step(Op::step(a, b), Op::step(c, d))));
    p += m;
    n -= m;
  }
  for (int64_t i = 0; i < n; i++) result = Op::step(result, P(p[i]));
  return result;
}

template <class Op, class T, class P = typename Collected<T>::type>
P reduce_run(const T *p, int64_t n, int64_t step) {
  if (step == 1) return reduce_contiguous<Op>(p, n);
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
