// The elements of a reduction's input, in the type in which it computes. Elements of that type are
// read in place; others are converted in blocks that stay in the cache. So no kernel needs a copy
// of its input in another dtype.
#ifndef PLAIT_CORE_SOURCE_H
#define PLAIT_CORE_SOURCE_H
#include "kernel/half.h"
#include "kernel/integers.h"
#include "pointwise/math.h"
#include "reduction/rows.h"

namespace plait::core {

// Writes n elements that are `step` elements apart, as numbers of T.
template <class T>
using Convert = void (*)(T *to, const char *from, int64_t n, int64_t step);

template <class T>
struct Source {
  const char *data;
  int64_t size;  // bytes of a stored element
  Convert<T> convert;  // null: elements are stored as T
  // null, or reduces rows of n adjacent elements, `apart` bytes from each other, without copies
  void (*adjacent)(const char *from, int64_t n, int64_t apart, int64_t rows,
                   typename Collected<T>::type *results) = nullptr;
  // null, or adds groups of four rows, and then `rest` rows, `step` elements from each other, to n
  // results without copies
  void (*add)(T *results, const char *from, int64_t step, int64_t groups, int64_t rest,
              int64_t n) = nullptr;

  bool converts_rows() const { return convert && !add; }
  const T *stored(int64_t at) const { return reinterpret_cast<const T *>(data) + at; }
  void get(T *to, int64_t at, int64_t n, int64_t step) const {
    convert(to, data + at * size, n, step);
  }
};

// Converters. `Map` makes a number of T from a stored element.

template <class T, class S, class Map>
void convert_by(T *to, const char *from, int64_t n, int64_t step) {
  const S *p = reinterpret_cast<const S *>(from);
  if (step == 1)
    for (int64_t i = 0; i < n; i++) to[i] = Map::template of<T>(p[i]);
  else
    for (int64_t i = 0; i < n; i++) to[i] = Map::template of<T>(p[i * step]);
}
template <class T, Kind k, class Map>
void convert_halves(T *to, const char *from, int64_t n, int64_t step) {
  float some[kBlockOf];
  const uint16_t *p = reinterpret_cast<const uint16_t *>(from);
  for (int64_t i = 0; i < n; i += kBlockOf) {
    const int64_t m = least(kBlockOf, n - i);
    widen(k, some, p + i * step, m, step);
    for (int64_t j = 0; j < m; j++) to[i + j] = Map::template of<T>(some[j]);
  }
}
template <Kind k>
void widen_halves(float *to, const char *from, int64_t n, int64_t step) {
  widen(k, to, reinterpret_cast<const uint16_t *>(from), n, step);
}

struct AsIs {
  template <class T, class S>
  static PLAIT_INLINE T of(S x) {
    return T(x);
  }
};
struct NotZero {
  template <class T, class S>
  static PLAIT_INLINE T of(S x) {
    if constexpr (scalar::math::is_complex<S>)
      return T((x.re != 0) | (x.im != 0));
    else
      return T(x != S(0));
  }
};
struct Magnitude {
  template <class T, class S>
  static PLAIT_INLINE T of(S x) {
    if constexpr (!scalar::math::is_complex<S>) {
      return __builtin_fabs(T(x));
    } else {
      // scaled, so that squares of float64 do not overflow
      const T a = __builtin_fabs(T(x.re)), b = __builtin_fabs(T(x.im));
      const T big = a > b ? a : b, little = a > b ? b : a;
      if (__builtin_isinf(a) | __builtin_isinf(b)) return T(__builtin_inf());
      const T share = big > 0 ? little / big : T(0);
      return a != a || b != b ? a + b : big * __builtin_sqrt(1 + share * share);
    }
  }
};
struct Square {
  template <class T, class S>
  static PLAIT_INLINE T of(S x) {
    if constexpr (!scalar::math::is_complex<S>)
      return T(x) * T(x);
    else
      return T(x.re) * T(x.re) + T(x.im) * T(x.im);
  }
};

// The converter of elements of kind k, null if there is none.
#define PLAIT_CONVERT(k, ...)   \
  case k:                       \
    if constexpr (selects(k)) { \
      return __VA_ARGS__;       \
    } else {                    \
      return nullptr;           \
    }

template <class T, class Map>
Convert<T> converter_of_floats(Kind k) {
  switch (k) {
    PLAIT_CONVERT(F32, convert_by<T, float, Map>)
    PLAIT_CONVERT(F64, convert_by<T, double, Map>)
    PLAIT_CONVERT(F16, convert_halves<T, F16, Map>)
    PLAIT_CONVERT(BF16, convert_halves<T, BF16, Map>)
    PLAIT_CONVERT(C64, convert_by<T, Complex64, Map>)
    PLAIT_CONVERT(C128, convert_by<T, Complex128, Map>)
    default: return nullptr;
  }
}
template <class T, class Map>
Convert<T> converter_of_integers(Kind k) {
  switch (k) {
    case Bool:
      return convert_by<T, uint8_t, Map>;
      PLAIT_CONVERT(U8, convert_by<T, uint8_t, Map>)
      PLAIT_CONVERT(I8, convert_by<T, int8_t, Map>)
      PLAIT_CONVERT(U16, convert_by<T, uint16_t, Map>)
      PLAIT_CONVERT(I16, convert_by<T, int16_t, Map>)
      PLAIT_CONVERT(U32, convert_by<T, uint32_t, Map>)
      PLAIT_CONVERT(I32, convert_by<T, int32_t, Map>)
      PLAIT_CONVERT(U64, convert_by<T, uint64_t, Map>)
      PLAIT_CONVERT(I64, convert_by<T, int64_t, Map>)
    default: return nullptr;
  }
}

// Reduces n converted elements: the steps and their order are those of reduce_run.
template <class Op, class T, class P = typename Collected<T>::type>
P reduce_converted(const Source<T> &from, int64_t at, int64_t n, int64_t step) {
  constexpr int64_t kWhole = 4 * kLanes<T>;
  T some[kBlockOf];
  P result = Op::template start<P>();
  if (step != 1) {
    P other = result;
    for (int64_t i = 0; i < n; i += kBlockOf) {
      const int64_t m = least(kBlockOf, n - i);
      from.get(some, at + i * step, m, step);
      int64_t j = 0;
      for (; j + 2 <= m; j += 2) {
        result = Op::step(result, P(some[j]));
        other = Op::step(other, P(some[j + 1]));
      }
      if (j < m) result = Op::step(result, P(some[j]));
    }
    return Op::step(result, other);
  }
  for (int64_t i = 0; i < n; i += kBlockOf) {
    const int64_t m = least(kBlockOf, n - i), whole = m / kWhole * kWhole;
    from.get(some, at + i, m, 1);
    if (whole) {
      if constexpr (is_float<T> && Op::kNanWins)
        result = Op::step(result, extreme_block<Op, T, P, const T *>(some, whole));
      else
        result = Op::step(result, reduce_block<Op, T, P, const T *>(some, whole));
    }
    result = reduce_rest<Op, T, P, const T *>(result, some + whole, m - whole);
  }
  return result;
}

// Reduces rows of halves: the steps and their order are those of reduce_converted.
template <class Op, class H>
void reduce_halves(const char *from, int64_t n, int64_t apart, int64_t rows, double *results) {
  for (int64_t i = 0; i < rows; i++)
    results[i] = reduce_contiguous<Op, float>(WidenedRun<H>(from + i * apart), n);
}

// Reduces short rows, one behind the other, which are converted several at once.
template <class Op, class T, class P = typename Collected<T>::type>
void reduce_converted_rows(const Source<T> &from, int64_t at, int64_t n, int64_t rows, P *results) {
  T some[kBlockOf];
  const int64_t most = kBlockOf / n;
  for (int64_t i = 0; i < rows; i += most) {
    const int64_t m = least(most, rows - i);
    from.get(some, at + i * n, m * n, 1);
    for (int64_t j = 0; j < m; j++)
      results[i + j] = reduce_contiguous<Op, T, P, const T *>(some + j * n, n);
  }
}

// The sum of squares of n adjacent numbers. A lane of a vector of T adds at most 32 squares before
// the sum goes on in float64. A block of float32 that overflows or underflows is summed again in
// float64.
template <class T, class From>
PLAIT_INLINE double sum_of_squares(From p, int64_t n) {
  constexpr int64_t w = kLanes<T>;
  double result = 0;
  for (int64_t m; n > 0; p += m, n -= m) {
    m = least(n, kBlockOf);
    int64_t i = 0;
    Vec<T> a = {};
    if (m >= 4 * w) {
      Vec<T> b = a, c = a, d = a;
      for (; i + 4 * w <= m; i += 4 * w) {
        const Vec<T> x = load(p + i), y = load(p + i + w), z = load(p + i + 2 * w),
                     u = load(p + i + 3 * w);
        a = fused(x, x, a), b = fused(y, y, b), c = fused(z, z, c), d = fused(u, u, d);
      }
      a = (a + b) + (c + d);
    }
    for (; i + w <= m; i += w) a = fused(load(p + i), load(p + i), a);
    double sum = i ? double(in_every_lane<Sum, T>(a)[0]) : 0;
    const bool ordinary = sizeof(T) == 8 || i == 0 || (sum > 1e-25 && sum < 1e38);
    if (PLAIT_UNLIKELY(!ordinary)) i = 0, sum = 0;
    for (; i < m; i++) sum += double(p[i]) * double(p[i]);
    result += sum;
  }
  return result;
}
template <class T>
void sums_of_squares(const char *from, int64_t n, int64_t apart, int64_t rows, double *results) {
  for (int64_t i = 0; i < rows; i++)
    results[i] = sum_of_squares<T>(reinterpret_cast<const T *>(from + i * apart), n);
}
template <class H>
void sums_of_squares_of_halves(const char *from, int64_t n, int64_t apart, int64_t rows,
                               double *results) {
  for (int64_t i = 0; i < rows; i++)
    results[i] = sum_of_squares<float>(WidenedRun<H>(from + i * apart), n);
}

}  // namespace plait::core
#endif  // PLAIT_CORE_SOURCE_H
