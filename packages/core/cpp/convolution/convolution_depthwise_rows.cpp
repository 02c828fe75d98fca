// Depthwise convolutions with a window of 3 x 3, a border of one element and no strides, of planes
// whose rows are a few vectors. A row is read once and added to the three rows of results that see
// it, whose sums stay in registers. A row of results is stored as whole vectors, in ascending
// order: what they hold behind the row, the next row overwrites.
#include "convolution/convolution_depthwise.h"
#include "convolution/convolution_depthwise_frame.h"
#include "kernel/avx512.h"
#include "kernel/lanes.h"
#include "linalg/tile.h"

namespace plait::core {
namespace {

constexpr int64_t kUnit = 1 << 12;  // results of a unit of parallel work
template <class T>
constexpr int64_t kSlack = 2 * kLanes<T>;  // elements that are read before and behind a plane

template <class T>
struct Filter {
  T factors[9], start;
};

// Planes of h x w elements, `apart` elements from one to the next.
template <class T>
struct Planes {
  const T *data;
  int64_t apart, h, w;
};

// The results of P planes at once, whose rows are V vectors; a filter for each.
template <class T, int V, int P>
PLAIT_INLINE void sum_rows(const Planes<T> &planes, const Filter<T> *filters, const Bounds &bounds,
                           T *to) {
  typedef __typeof__(Vec<T>{} < Vec<T>{}) Lanes;
  constexpr int64_t lanes = kLanes<T>;
  const int64_t h = planes.h, w = planes.w, apart = planes.apart;
  Vec<T> index, f[P][9], start[P];
  for (int64_t i = 0; i < lanes; i++) index[i] = T(i);
  const Lanes but_first = index > Vec<T>{}, but_last = index < splat(T(w - 1 - (V - 1) * lanes));
  const Vec<T> low = splat(T(bounds.low)), high = splat(T(bounds.high));
  const Vec<T> zero = splat(T(bounds.exist ? bounds.zero : -0.0));
  // Sums of the rows of results above a row, beside it and below it.
  Vec<T> above[P][V], beside[P][V], below[P][V];
  PLAIT_UNROLL for (int p = 0; p < P; p++) {
    PLAIT_UNROLL for (int t = 0; t < 9; t++) { f[p][t] = splat(filters[p].factors[t]); }
    start[p] = splat(filters[p].start);
    Vec<T> sum = start[p];
    PLAIT_UNROLL for (int t = 0; t < 3; t++) { sum = fused(f[p][t], Vec<T>{}, sum); }
    PLAIT_UNROLL for (int v = 0; v < V; v++) { above[p][v] = beside[p][v] = sum; }
  }
  const auto store_above = [&]() __attribute__((always_inline)) {
    PLAIT_UNROLL for (int p = 0; p < P; p++) {
      PLAIT_UNROLL for (int v = 0; v < V; v++) {
        Vec<T> x = above[p][v] + zero;
        if (bounds.exist) {
          x = x < low ? low : x;
          x = x > high ? high : x;
        }
        store(to + p * apart + v * lanes, x);
      }
    }
    to += w;
  };
  const T *row = planes.data;
  for (int64_t y = 0; y < h; y++, row += w) {
    PLAIT_UNROLL for (int p = 0; p < P; p++) {
      PLAIT_UNROLL for (int v = 0; v < V; v++) {
        const T *at = row + p * apart + v * lanes;
        const Vec<T> own = load(at);
        Vec<T> left = load(at - 1), right = load(at + 1);
        if (v == 0) left = Vec<T>(Lanes(left) & but_first);
        if (v == V - 1) right = Vec<T>(Lanes(right) & but_last);
        const auto add = [&](int t, Vec<T> sum) __attribute__((always_inline)) {
          return fused(f[p][t + 2], right, fused(f[p][t + 1], own, fused(f[p][t], left, sum)));
        };
        above[p][v] = add(6, above[p][v]);
        beside[p][v] = add(3, beside[p][v]);
        below[p][v] = add(0, start[p]);
      }
    }
    if (y) store_above();
    PLAIT_UNROLL for (int p = 0; p < P; p++) {
      PLAIT_UNROLL for (int v = 0; v < V; v++) {
        above[p][v] = beside[p][v];
        beside[p][v] = below[p][v];
      }
    }
  }
  PLAIT_UNROLL for (int p = 0; p < P; p++) {
    PLAIT_UNROLL for (int v = 0; v < V; v++) {
      PLAIT_UNROLL for (int t = 6; t < 9; t++) {
        above[p][v] = fused(f[p][t], Vec<T>{}, above[p][v]);
      }
    }
  }
  store_above();
}

template <class T>
using SumRows = void (*)(const Planes<T> &, const Filter<T> *, const Bounds &, T *);
template <class T>
struct Functions {
  SumRows<T> one = nullptr, two = nullptr;  // of a plane, and of two planes at once; or null
};

#if defined(__AVX2__) && defined(__x86_64__)
template <class T, int V>
PLAIT_NOINLINE void sum_few(const Planes<T> &planes, const Filter<T> *filters, const Bounds &bounds,
                            T *to) {
  sum_rows<T, V, 1>(planes, filters, bounds, to);
}

// The same sums in twice as many registers: the bits do not differ.
template <class T, int V, int P>
__attribute__((noinline, target("avx512f,avx512vl"))) void sum_many(const Planes<T> &planes,
                                                                    const Filter<T> *filters,
                                                                    const Bounds &bounds, T *to) {
  sum_rows<T, V, P>(planes, filters, bounds, to);
}

template <class T>
Functions<T> functions_of(int64_t w) {
  constexpr int64_t lanes = kLanes<T>;
  static const bool has_many = has_avx512() && __builtin_cpu_supports("avx512vl");
  if (w <= lanes && has_many) return {sum_many<T, 1, 1>, sum_many<T, 1, 2>};
  if (w <= lanes) return {sum_few<T, 1>};
  if (w <= 2 * lanes) return {has_many ? sum_many<T, 2, 1> : sum_few<T, 2>};
  if (w <= 3 * lanes && has_many) return {sum_many<T, 3, 1>};
  if (w <= 4 * lanes && has_many) return {sum_many<T, 4, 1>};
  return {};
}
#else  // other processors were not measured
template <class T>
Functions<T> functions_of(int64_t) {
  return {};
}
#endif

// A run of planes of a tensor, and their results.
template <class T>
struct Run {
  const Conv &v;
  const T *x, *w, *bias;
  int64_t step;  // of the bias
  bool turned;  // factors are taken from the last to the first
  T *y, *copy, *result;
  Functions<T> functions;
  Bounds bounds;

  Filter<T> filter(int64_t i) const {
    const int64_t o = i % v.c;
    Filter<T> f{{}, bias ? bias[o * step] : T(0)};
    for (int64_t t = 0; t < 9; t++) f.factors[t] = w[o * 9 + (turned ? 8 - t : t)];
    return f;
  }
  void activate(T *results) const {
    if (v.activation && !bounds.exist) v.activation(results, v.h * v.w);
  }
  // `apart`: what lies behind the results must stay as it is.
  void one(int64_t i, bool apart) const {
    const int64_t area = v.h * v.w;
    const T *from = x + i * area;
    if (i == 0 || i == v.n * v.c - 1)  // what lies around the tensor may be no memory
      from = static_cast<T *>(memcpy(copy, from, size_t(area) * sizeof(T)));
    T *own = y + i * area, *to = apart ? result : own;
    const Filter<T> f = filter(i);
    functions.one({from, area, v.h, v.w}, &f, bounds, to);
    activate(to);
    if (apart) memcpy(own, result, size_t(area) * sizeof(T));
  }
  void two(int64_t i, int64_t distance) const {
    const int64_t area = v.h * v.w;
    const Filter<T> f[2] = {filter(i), filter(i + distance)};
    T *to = y + i * area;
    functions.two({x + i * area, distance * area, v.h, v.w}, f, bounds, to);
    activate(to);
    activate(to + distance * area);
  }
  // The first half of the planes beside the second one, if two are summed at once.
  void all(int64_t begin, int64_t end) const {
    const int64_t half = functions.two ? (end - begin) / 2 : 0, middle = begin + half;
    int64_t i = begin;
    if (half && i == 0) {
      one(0, half == 1);
      one(middle, middle == end - 1);
      i++;
    }
    for (; i < middle - 1; i++) two(i, half);
    for (; i < middle; i++) one(i, true);
    for (i = half ? most(middle + half - 1, middle + (begin == 0)) : begin; i < end; i++)
      one(i, i == end - 1);
  }
};

template <class T>
plait_status sum_planes(const plait_call *c, const Conv &v, const T *x, const T *w, bool turned,
                        const DLTensor *bias, T *y) {
  const int64_t area = v.h * v.w, room = rounded(area + 2 * kSlack<T>);
  Run<T> run{v,
             x,
             w,
             nullptr,
             0,
             turned,
             y,
             nullptr,
             nullptr,
             functions_of<T>(v.w),
             v.activation.bounds()};
  if (bias) run.bias = data<T>(bias), run.step = bias->strides[0];
  return with_zeros<T>(c, v.n * v.c, kUnit / area + 1, 2 * room,
                       [&](int64_t begin, int64_t end, T *space) {
                         Run<T> own = run;
                         own.copy = space + kSlack<T>;
                         own.result = space + room;
                         own.all(begin, end);
                       });
}

}  // namespace

template <class T>
bool depthwise_rows_fit(const Conv &v) {
  const bool window = v.kh == 3 && v.kw == 3 && v.ph == 1 && v.pw == 1 && v.dh == 1 && v.dw == 1;
  return window && v.sh == 1 && v.sw == 1 && v.goc() == 1 && v.h * v.w >= kSlack<T> &&
         functions_of<T>(v.w).one;
}

template <class T>
plait_status depthwise_rows_forward(const plait_call *c, const Conv &v, const T *x, const T *w,
                                    const DLTensor *bias, T *y) {
  return sum_planes(c, v, x, w, false, bias, y);
}

template <class T>
plait_status depthwise_rows_backward_input(const plait_call *c, const Conv &v, const T *gy,
                                           const T *w, T *gx) {
  Conv turned = v;  // the planes have the size of the results
  turned.activation = {};
  return sum_planes<T>(c, turned, gy, w, true, nullptr, gx);
}

#define PLAIT_INSTANCE(T)                                                                          \
  template bool depthwise_rows_fit<T>(const Conv &);                                               \
  template plait_status depthwise_rows_forward(const plait_call *, const Conv &, const T *,        \
                                               const T *, const DLTensor *, T *);                  \
  template plait_status depthwise_rows_backward_input(const plait_call *, const Conv &, const T *, \
                                                      const T *, T *);
PLAIT_INSTANCE(float)
PLAIT_INSTANCE(double)

}  // namespace plait::core
