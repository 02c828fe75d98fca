#include "convolution/winograd_transforms.h"

#include "convolution/winograd.h"
#include "kernel/avx512.h"

namespace plait::core {
namespace {

// The M points besides 0 and infinity: pairs of opposite points, and a single one where M is odd.
// Tiles of M results and windows of 3 need them, or of M - 2 and windows of 5. Those of M = 4 are
// not the usual 1 and 2: these have a third of the error (docs/design/0024).
template <int M>
struct Points;
template <>
struct Points<2> {
  static constexpr double pairs[] = {1}, single = 0;
};
template <>
struct Points<4> {
  static constexpr double pairs[] = {0.75, 1.5}, single = 0;
};
template <>
struct Points<5> {
  static constexpr double pairs[] = {0.9375, 1.875}, single = -0.375;
};
template <>
struct Points<6> {
  static constexpr double pairs[] = {0.5, 1, 2}, single = 0;
};

// Coefficients of the maps. Points are ordered: 0, x[0], -x[0], x[1], -x[1], ..., the single one,
// infinity. The slope of a point is the derivative of the product of (y - point) there.
template <int M>
struct Coefficients {
  static constexpr int kPairs = M / 2, kPowers = M > 5 ? M : 5;
  double all[kPairs + 1] = {};         // of the product of (y - x[i]^2), by powers of y
  double others[kPairs][kPairs] = {};  // of the product without one i
  double powers[kPairs][kPowers] = {};
  double slopes[kPairs][2] = {};  // 1 over those of x[i] and -x[i]
  double zero = 0;                // 1 over the slope of 0
  double single[kPowers] = {}, single_slope = 0;

  static constexpr void times(double *c, int degree, double root) {  // c(y) *= y - root
    for (int k = degree + 1; k >= 0; k--)
      c[k] = (k ? c[k - 1] : 0) - (k <= degree ? root * c[k] : 0);
  }
  constexpr Coefficients() {
    constexpr bool odd = M % 2;
    const double s = Points<M>::single;
    all[0] = 1;
    double slope = s;
    for (int i = 0; i < kPairs; i++) {
      const double x = Points<M>::pairs[i];
      times(all, i, x * x);
      slope *= s * s - x * x;
      others[i][0] = 1;
      double own = 2 * x * x;
      for (int j = 0, degree = 0; j < kPairs; j++) {
        const double y = Points<M>::pairs[j];
        if (j == i) continue;
        times(others[i], degree++, y * y);
        own *= x * x - y * y;
      }
      slopes[i][0] = 1 / (odd ? own * (x - s) : own);
      slopes[i][1] = 1 / (odd ? own * (-x - s) : own);
      powers[i][0] = 1;
      for (int k = 1; k < kPowers; k++) powers[i][k] = powers[i][k - 1] * x;
    }
    zero = 1 / (odd ? -s * all[0] : all[0]);
    if (odd) single_slope = 1 / slope;
    single[0] = 1;
    for (int k = 1; k < kPowers; k++) single[k] = single[k - 1] * s;
  }
};
template <int M>
constexpr Coefficients<M> kOf{};

// a factor + c
template <class W, class T>
PLAIT_INLINE W plus(W a, T factor, W c) {
  return fused(a, factor - W{}, c);
}

// The transposed map of a product with a polynomial: of M + 2 numbers.
template <class T, int M>
struct InputLine {
  static constexpr int kFrom = M + 2, kTo = M + 2, kPairs = M / 2;
  static constexpr bool kShifted = false;
  template <class W>
  static PLAIT_INLINE W product(const W *d) {  // of all pairs
    W sum = d[0] * T(kOf<M>.all[0]);
    PLAIT_UNROLL for (int k = 1; k <= kPairs; k++) sum = plus(d[2 * k], T(kOf<M>.all[k]), sum);
    return sum;
  }
  template <class W>
  static PLAIT_INLINE void map(const W *from, W *to) {
    W d[M + 2];
    PLAIT_UNROLL for (int k = 0; k < M + 2; k++) d[k] = from[k];
    if (M % 2) {
      to[M] = product(from + 1);
      PLAIT_UNROLL for (int k = 0; k <= M; k++) d[k] =
          plus(from[k], -T(Points<M>::single), from[k + 1]);
    }
    to[0] = product(d);
    to[M + 1] = product(d + 1);
    PLAIT_UNROLL for (int i = 0; i < kPairs; i++) {
      W even = d[2] * T(kOf<M>.others[i][0]), odd = d[1] * T(kOf<M>.others[i][0]);
      PLAIT_UNROLL for (int k = 1; k < kPairs; k++) {
        even = plus(d[2 * k + 2], T(kOf<M>.others[i][k]), even);
        odd = plus(d[2 * k + 1], T(kOf<M>.others[i][k]), odd);
      }
      to[2 * i + 1] = plus(odd, T(kOf<M>.powers[i][1]), even);
      to[2 * i + 2] = plus(odd, -T(kOf<M>.powers[i][1]), even);
    }
  }
};

// The values of a polynomial of R coefficients, over the slopes.
template <class T, int M, int R>
struct ValuesLine {
  static constexpr int kFrom = R, kTo = M + 2;
  static constexpr bool kShifted = false;
  template <class W>
  static PLAIT_INLINE void map(const W *g, W *to) {
    to[0] = g[0] * T(kOf<M>.zero);
    to[M + 1] = g[R - 1];
    PLAIT_UNROLL for (int i = 0; i < M / 2; i++) {
      W even = g[0], odd = g[1] * T(kOf<M>.powers[i][1]);
      PLAIT_UNROLL for (int k = 2; k < R; k++) {
        W &sum = k % 2 ? odd : even;
        sum = plus(g[k], T(kOf<M>.powers[i][k]), sum);
      }
      to[2 * i + 1] = (even + odd) * T(kOf<M>.slopes[i][0]);
      to[2 * i + 2] = (even - odd) * T(kOf<M>.slopes[i][1]);
    }
    if (M % 2) {
      W sum = g[0];
      PLAIT_UNROLL for (int k = 1; k < R; k++) sum = plus(g[k], T(kOf<M>.single[k]), sum);
      to[M] = sum * T(kOf<M>.single_slope);
    }
  }
};

// R results of the products of the other two maps' values.
template <class T, int M, int R, bool Shifted>
struct ResultsLine {
  static constexpr int kFrom = M + 2, kTo = R;
  static constexpr bool kShifted = Shifted;
  template <class W>
  static PLAIT_INLINE void map(const W *m, W *to) {
    constexpr int pairs = M / 2;
    W sum[pairs], difference[pairs];
    to[0] = M % 2 ? m[0] + m[M] : m[0];
    PLAIT_UNROLL for (int i = 0; i < pairs; i++) {
      sum[i] = m[2 * i + 1] + m[2 * i + 2];
      difference[i] = m[2 * i + 1] - m[2 * i + 2];
      to[0] += sum[i];
    }
    PLAIT_UNROLL for (int k = 1; k < R; k++) {
      W y = (k % 2 ? difference[0] : sum[0]) * T(kOf<M>.powers[0][k]);
      PLAIT_UNROLL for (int i = 1; i < pairs; i++) y =
          plus(k % 2 ? difference[i] : sum[i], T(kOf<M>.powers[i][k]), y);
      if (M % 2) y = plus(m[M], T(kOf<M>.single[k]), y);
      to[k] = k == R - 1 ? y + m[M + 1] : y;
    }
  }
};

template <class T, int kBytes>
struct Register {
  typedef T type __attribute__((vector_size(kBytes)));
  typedef T unaligned __attribute__((vector_size(kBytes), aligned(sizeof(T)), may_alias));
};

template <class T, int kBytes, class Line>
PLAIT_INLINE void map_squares(int64_t count, const T *from, SquareSteps source, T *to,
                              SquareSteps target, const T *shift) {
  typedef typename Register<T, kBytes>::type Wide;
  typedef typename Register<T, kBytes>::unaligned Unaligned;
  constexpr int kIn = Line::kFrom, kOut = Line::kTo;
  constexpr int64_t w = kBytes / int64_t(sizeof(T));
  for (int64_t s = 0; s < count; s++, from += source.next, to += target.next)
    for (int64_t lane = 0; lane < kChannels<T>; lane += w) {
      Wide rows[kOut][kIn];  // transposed: the maps of the square's columns
      PLAIT_UNROLL for (int j = 0; j < kIn; j++) {
        Wide line[kIn], mapped[kOut];
        PLAIT_UNROLL for (int i = 0; i < kIn; i++) line[i] =
            *reinterpret_cast<const Unaligned *>(from + i * source.row + j * source.column + lane);
        Line::map(line, mapped);
        PLAIT_UNROLL for (int i = 0; i < kOut; i++) rows[i][j] = mapped[i];
      }
      Wide more = {};
      if (Line::kShifted && shift) more = *reinterpret_cast<const Unaligned *>(shift + lane);
      PLAIT_UNROLL for (int i = 0; i < kOut; i++) {
        Wide mapped[kOut];
        Line::map(rows[i], mapped);
        PLAIT_UNROLL for (int j = 0; j < kOut; j++) {
          if (Line::kShifted) mapped[j] += more;
          *reinterpret_cast<Unaligned *>(to + i * target.row + j * target.column + lane) =
              mapped[j];
        }
      }
    }
}

#if defined(__AVX2__)
constexpr int kShort = 32;
#else
constexpr int kShort = 16;  // compilers keep vectors that no register holds in memory
#endif
template <class T, class Line>
PLAIT_NOINLINE void map_short(int64_t count, const T *from, SquareSteps source, T *to,
                              SquareSteps target, const T *shift) {
  map_squares<T, kShort, Line>(count, from, source, to, target, shift);
}
#if defined(__AVX2__) && defined(__x86_64__)
template <class T, class Line>
__attribute__((noinline, target("avx512f"))) void map_64(int64_t count, const T *from,
                                                         SquareSteps source, T *to,
                                                         SquareSteps target, const T *shift) {
  map_squares<T, 64, Line>(count, from, source, to, target, shift);
}
#endif

template <class T, class Line, bool wide>
constexpr SquareMap<T> map_of() {
#if defined(__AVX2__) && defined(__x86_64__)
  if constexpr (wide) return map_64<T, Line>;
#endif
  return map_short<T, Line>;
}

// For windows of R and tiles of M + 3 - R; empty if the build does not use them. No rule takes
// tiles of M = 6: settings do.
template <class T, int M, int R, bool wide>
constexpr WinogradMaps<T> maps_of() {
  WinogradMaps<T> maps{};
  if constexpr (selects(sizeof(T) == 4 ? F32 : F64) &&
                (kSelectsSettings || (M < 6 && sizeof(T) == 4 && selects_tiles(R, M + 3 - R)))) {
    maps.input = map_of<T, InputLine<T, M>, wide>();
    maps.filter = map_of<T, ValuesLine<T, M, R>, wide>();
    maps.output = map_of<T, ResultsLine<T, M, M + 3 - R, true>, wide>();
    if constexpr (selects("conv2d_backward_weight")) {
      maps.gradient = map_of<T, ValuesLine<T, M, M + 3 - R>, wide>();
      maps.weight = map_of<T, ResultsLine<T, M, R, false>, wide>();
    }
  }
  return maps;
}
template <class T, bool wide>
constexpr WinogradMaps<T> kMaps[] = {maps_of<T, 2, 3, wide>(), maps_of<T, 4, 3, wide>(),
                                     maps_of<T, 5, 3, wide>(), maps_of<T, 6, 3, wide>(),
                                     maps_of<T, 4, 5, wide>(), maps_of<T, 5, 5, wide>(),
                                     maps_of<T, 6, 5, wide>()};

}  // namespace

template <class T>
const WinogradMaps<T> &winograd_maps(int64_t window, int64_t m) {
  const int64_t i = window == 5 ? m + 2 : m == 2 ? 0 : m - 3;
#if defined(__AVX2__) && defined(__x86_64__)
  if (has_avx512()) return kMaps<T, true>[i];
#endif
  return kMaps<T, false>[i];
}

template const WinogradMaps<float> &winograd_maps(int64_t, int64_t);
template const WinogradMaps<double> &winograd_maps(int64_t, int64_t);

}  // namespace plait::core
