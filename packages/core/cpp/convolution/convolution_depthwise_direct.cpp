// Depthwise convolutions with a window of 3 x 3 and a border of one element: sums are read from the
// planes themselves. A vector of results sees three rows, of each the elements to the left of its
// own, its own, and those to the right.
#include "convolution/convolution_depthwise.h"
#include "convolution/convolution_depthwise_frame.h"
#include "kernel/lanes.h"

namespace plait::core {
namespace {

constexpr int64_t kUnit = 1 << 12;  // results of a unit of parallel work

template <class V>
PLAIT_INLINE V after_zero(V a) {  // a zero, and all lanes but the last
  if constexpr (sizeof(a[0]) == 4)
    return shuffled<8, 0, 1, 2, 3, 4, 5, 6>(a, V{});
  else
    return shuffled<4, 0, 1, 2>(a, V{});
}
template <class V>
PLAIT_INLINE V before_zero(V a) {  // all lanes but the first, and a zero
  if constexpr (sizeof(a[0]) == 4)
    return shuffled<1, 2, 3, 4, 5, 6, 7, 8>(a, V{});
  else
    return shuffled<1, 2, 3, 4>(a, V{});
}

// What a vector of results sees of a row, `own` at the element that is its first one's own.
template <class T>
struct Three {
  Vec<T> left, own, right;
};
template <class T, int Step, bool First, bool Last>
PLAIT_INLINE Three<T> three(const T *own) {
  constexpr int64_t w = kLanes<T>;
  if constexpr (Step == 1) {
    const Vec<T> v = load(own);
    return {First ? after_zero(v) : load(own - 1), v, Last ? before_zero(v) : load(own + 1)};
  } else {
    const Vec<T> a = load(own), b = load(own + w), right = odd_lanes(a, b);
    return {First ? after_zero(right) : even_lanes(load(own - 1), load(own + w - 1)),
            even_lanes(a, b), right};
  }
}

// The bounds of the results, if there are any.
template <class T, bool IsBounded>
struct VectorBounds {
  Vec<T> low, high, zero;
  explicit VectorBounds(const Bounds &b)
      : low(splat(T(b.low))), high(splat(T(b.high))), zero(splat(T(b.zero))) {}
  Vec<T> operator()(Vec<T> sum) const {
    if constexpr (!IsBounded) return sum;
    const Vec<T> value = sum + zero, x = value < low ? low : value;
    return x > high ? high : x;
  }
};

template <class T, int Step, bool First, bool Last, bool IsBounded>
PLAIT_INLINE void sum_window(const T *const *rows, int64_t q, const Vec<T> *factors, Vec<T> sum,
                             const VectorBounds<T, IsBounded> &bounds, T *to) {
  for (int i = 0; i < 3; i++) {
    const Three<T> see = three<T, Step, First, Last>(rows[i] + q * Step);
    sum = fused(factors[3 * i], see.left, sum);
    sum = fused(factors[3 * i + 1], see.own, sum);
    sum = fused(factors[3 * i + 2], see.right, sum);
  }
  store(to + q, bounds(sum));
}

// A plane of h x w elements, `zeros` for the rows outside of it, and the factors of its window.
template <class T>
struct Window {
  const T *plane, *zeros;
  int64_t h, w;
  T factors[9], start;
  Bounds bounds;  // of the results
};

// Rows [y, end) of the results.
template <class T, int Step, bool IsBounded>
PLAIT_NOINLINE void sum_windows(const Window<T> &v, int64_t ow, int64_t y, int64_t end, T *to) {
  constexpr int64_t lanes = kLanes<T>;
  constexpr bool last = Step == 1;  // with two, rows have an even length: all see elements only
  Vec<T> factors[9];
  for (int t = 0; t < 9; t++) factors[t] = splat(v.factors[t]);
  const Vec<T> start = splat(v.start);
  const VectorBounds<T, IsBounded> bounds(v.bounds);
  const T *const plane = v.plane, *const zeros = v.zeros;
  const int64_t h = v.h, w = v.w;
  for (; y < end; y++, to += ow) {
    const T *rows[3];
    for (int64_t i = 0; i < 3; i++) {
      const int64_t row = y * Step + i - 1;
      rows[i] = row < 0 || row >= h ? zeros : plane + row * w;
    }
    if (ow == lanes) {
      sum_window<T, Step, true, last>(rows, 0, factors, start, bounds, to);
      continue;
    }
    sum_window<T, Step, true, false>(rows, 0, factors, start, bounds, to);
    for (int64_t q = lanes; q < ow - lanes; q += lanes)
      sum_window<T, Step, false, false>(rows, q, factors, start, bounds, to);
    sum_window<T, Step, false, last>(rows, ow - lanes, factors, start, bounds, to);
  }
}

template <class T>
using SumWindows = void (*)(const Window<T> &, int64_t, int64_t, int64_t, T *);
template <class T>
SumWindows<T> windows_of(int64_t step, bool is_bounded) {
  if (step == 1) return is_bounded ? sum_windows<T, 1, true> : sum_windows<T, 1, false>;
  return is_bounded ? sum_windows<T, 2, true> : sum_windows<T, 2, false>;
}

// `turned`: factors are taken from the last to the first.
template <class T>
plait_status sum_planes(const plait_call *c, const Conv &v, const T *x, const T *w, bool turned,
                        const DLTensor *bias, T *y) {
  const int64_t filters = v.goc(), area = v.oh * v.ow;
  const DepthwiseBands bands(v.oh, 1, v.w * v.sh, kRowsBand);
  const bool past = v.n * v.oc * area * int64_t(sizeof(T)) >= kPastCaches;
  const Bounds bounds = v.activation.bounds();
  const bool applies = v.activation && !bounds.exist, beside = past || applies;
  const SumWindows<T> sum = windows_of<T>(v.sw, bounds.exist);
  const int64_t some = beside ? most(kMade / v.ow, 1) : bands.rows;
  const int64_t border = rounded(v.w + kLanes<T>);
  return with_zeros<T>(
      c, v.n * v.c * bands.count, kUnit / (bands.rows * v.ow * filters) + 1,
      border + (past ? some * v.ow : 0), [&](int64_t begin, int64_t end, T *zeros) {
        for (int64_t u = begin; u < end; u++) {
          const int64_t plane = u / bands.count, top = u % bands.count * bands.rows;
          const int64_t bottom = least(top + bands.rows, v.oh);
          const T *from = x + plane * v.h * v.w;
          for (int64_t m = 0; m < filters; m++) {
            const int64_t o = plane % v.c * filters + m;
            const T start = bias ? data<T>(bias)[o * bias->strides[0]] : T(0);
            Window<T> window{from, zeros, v.h, v.w, {}, start, bounds};
            for (int64_t t = 0; t < 9; t++) window.factors[t] = w[o * 9 + (turned ? 8 - t : t)];
            for (int64_t i = top; i < bottom; i += some) {
              const int64_t last = least(i + some, bottom), n = (last - i) * v.ow;
              T *own = y + (plane * filters + m) * area + i * v.ow;
              T *to = past ? zeros + border : own;
              sum(window, v.ow, i, last, to);
              if (applies) v.activation(to, n);
              if (past) copy_row_past(own, to, n);
            }
          }
        }
      });
}

}  // namespace

template <class T>
bool depthwise_direct_fit(const Conv &v) {
  const bool window = v.kh == 3 && v.kw == 3 && v.ph == 1 && v.pw == 1 && v.dh == 1 && v.dw == 1;
  const bool steps = v.sh == v.sw && (v.sw == 1 || (v.sw == 2 && v.w % 2 == 0));
  return window && steps && v.ow >= kLanes<T>;
}

template <class T>
bool depthwise_direct_backward_fit(const Conv &v) {
  return depthwise_direct_fit<T>(v) && v.sw == 1 && v.goc() == 1;
}

template <class T>
plait_status depthwise_direct_forward(const plait_call *c, const Conv &v, const T *x, const T *w,
                                      const DLTensor *bias, T *y) {
  return sum_planes(c, v, x, w, false, bias, y);
}

template <class T>
plait_status depthwise_direct_backward_input(const plait_call *c, const Conv &v, const T *gy,
                                             const T *w, T *gx) {
  Conv turned = v;  // the planes have the size of the results
  turned.activation = {};
  return sum_planes(c, turned, gy, w, true, nullptr, gx);
}

#define PLAIT_INSTANCE(T)                                                                     \
  template bool depthwise_direct_fit<T>(const Conv &);                                        \
  template bool depthwise_direct_backward_fit<T>(const Conv &);                               \
  template plait_status depthwise_direct_forward(const plait_call *, const Conv &, const T *, \
                                                 const T *, const DLTensor *, T *);           \
  template plait_status depthwise_direct_backward_input(const plait_call *, const Conv &,     \
                                                        const T *, const T *, T *);
PLAIT_INSTANCE(float)
PLAIT_INSTANCE(double)

}  // namespace plait::core
