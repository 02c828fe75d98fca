#include "fft/fft_line.h"

#include "fft/fft_lanes.h"

namespace plait::core::fft {
namespace {

template <class T>
constexpr int64_t kPair = 2 * kLanes<T>;  // numbers of a pair of vectors

// Vectors that the passes of the Split form need, one set.
template <class T>
int64_t padded_length(const Plan<T> &plan) {
  return (plan.length + kLanes<T> - 1) / kLanes<T> * kLanes<T>;
}

// Lane l has the elements l, l + lanes, ...; their transforms, multiplied by roots, are joined by
// transforms over the lanes.
template <class T>
void split_line(const Plan<T> &plan, const T *from, T *to, T *scratch, bool inverse, T scale) {
  constexpr int lanes = int(kLanes<T>);
  const int64_t m = plan.length, padded = padded_length(plan);
  T *x = scratch, *y = scratch + padded * kPair<T>;
  const Vec<T> by = splat(scale);
  for (int64_t j = 0; j < m; j++) {
    const Pair<T> v = scaled(load_pairs(from + j * kPair<T>), by);
    put(x, j, inverse ? exchanged(v) : v);
  }
  x = run_passes(plan, x, y);
  for (int64_t k = m; k < padded; k++) put(x, k, Pair<T>{});
  for (int64_t k = 0; k < m; k += lanes) {
    Vec<T> re[lanes], im[lanes];
    PLAIT_UNROLL for (int i = 0; i < lanes; i++) {
      const Pair<T> v = times(at(x, k + i), at(plan.joining, k + i));
      re[i] = v.re;
      im[i] = v.im;
    }
    transpose_square<T>(re);
    transpose_square<T>(im);
    Pair<T> a[lanes];
    PLAIT_UNROLL for (int i = 0; i < lanes; i++) a[i] = {re[i], im[i]};
    butterfly<T, lanes>(a);
    if (inverse) PLAIT_UNROLL for (int i = 0; i < lanes; i++) a[i] = exchanged(a[i]);
    T *out = to + 2 * k;
    if (k + lanes <= m) {
      PLAIT_UNROLL for (int i = 0; i < lanes; i++) store_pairs(out + 2 * m * i, a[i]);
    } else {
      T last[kPair<T>];
      for (int i = 0; i < lanes; i++) {
        store_pairs(last, a[i]);
        memcpy(out + 2 * m * i, last, uint64_t(2 * (m - k)) * sizeof(T));
      }
    }
  }
}

// to = a * b * scale for n complex numbers; with `exchange` the parts of `a` are exchanged first.
template <class T>
void multiply(const T *a, const T *b, T *to, int64_t n, T scale, bool exchange) {
  constexpr int64_t lanes = kLanes<T>;
  int64_t j = 0;
  for (; j + lanes <= n; j += lanes) {
    Pair<T> v = scaled(load_pairs(a + 2 * j), splat(scale));
    if (exchange) v = exchanged(v);
    store_pairs(to + 2 * j, times(v, load_pairs(b + 2 * j)));
  }
  for (; j < n; j++) {
    const T re = a[2 * j + exchange] * scale, im = a[2 * j + 1 - exchange] * scale;
    const T u = b[2 * j], v = b[2 * j + 1];
    to[2 * j] = fused(-im, v, re * u);
    to[2 * j + 1] = fused(im, u, re * v);
  }
}

// j k = (j^2 + k^2 - (k - j)^2) / 2 makes a convolution of the transform (Bluestein, A linear
// filtering approach to the computation of discrete Fourier transform, 1970).
template <class T>
void chirp_line(const Plan<T> &plan, const T *from, T *to, T *scratch, bool inverse, T scale) {
  const int64_t n = plan.n, m = plan.inner->n;
  T *a = scratch, *rest = scratch + 2 * m;
  multiply(from, plan.chirp, a, n, scale, inverse);
  memset(a + 2 * n, 0, uint64_t(2 * (m - n)) * sizeof(T));
  transform_line(*plan.inner, a, a, rest, false, T(1));
  multiply(a, plan.chirp_transform, a, m, T(1), false);
  transform_line(*plan.inner, a, a, rest, true, T(1));
  multiply(a, plan.chirp, to, n, T(1), false);
  if (!inverse) return;
  for (int64_t j = 0; j < n; j++) {
    const T re = to[2 * j];
    to[2 * j] = to[2 * j + 1];
    to[2 * j + 1] = re;
  }
}

}  // namespace

template <class T>
uint64_t scratch_bytes(const Plan<T> &plan) {
  if (plan.form == Chirp)
    return uint64_t(2 * plan.inner->n) * sizeof(T) + scratch_bytes(*plan.inner);
  return uint64_t(2 * kPair<T> * padded_length(plan)) * sizeof(T);
}

template <class T>
void transform_line(const Plan<T> &plan, const T *from, T *to, T *scratch, bool inverse, T scale) {
  if (plan.form == Chirp)
    chirp_line(plan, from, to, scratch, inverse, scale);
  else
    split_line(plan, from, to, scratch, inverse, scale);
}

template uint64_t scratch_bytes(const Plan<float> &);
template uint64_t scratch_bytes(const Plan<double> &);
template void transform_line(const Plan<float> &, const float *, float *, float *, bool, float);
template void transform_line(const Plan<double> &, const double *, double *, double *, bool,
                             double);

}  // namespace plait::core::fft
