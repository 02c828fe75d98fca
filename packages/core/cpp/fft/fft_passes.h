// Fourier transforms of vectors: each lane has a line of its own. The passes are those of
// Stockham's algorithm, whose result is in order (Van Loan, Computational Frameworks for the Fast
// Fourier Transform, 1992, section 1.7). An element is a vector of real parts and one of imaginary
// parts.
#pragma once
#include "fft/fft_plan.h"

namespace plait::core::fft {

template <class T>
struct Pair {
  Vec<T> re, im;
};
template <class T>
PLAIT_INLINE Pair<T> operator+(Pair<T> a, Pair<T> b) {
  return {a.re + b.re, a.im + b.im};
}
template <class T>
PLAIT_INLINE Pair<T> operator-(Pair<T> a, Pair<T> b) {
  return {a.re - b.re, a.im - b.im};
}
template <class T>
PLAIT_INLINE Pair<T> times(Pair<T> a, Pair<T> b) {
  return {fused(-a.im, b.im, a.re * b.re), fused(a.im, b.re, a.re * b.im)};
}
template <class T>
PLAIT_INLINE Pair<T> scaled(Pair<T> a, Vec<T> by) {
  return {a.re * by, a.im * by};
}
template <class T>
PLAIT_INLINE Pair<T> times_i(Pair<T> a) {
  return {-a.im, a.re};
}
template <class T>
PLAIT_INLINE Pair<T> times_minus_i(Pair<T> a) {
  return {a.im, -a.re};
}
template <class T>
PLAIT_INLINE Pair<T> conjugate(Pair<T> a) {
  return {a.re, -a.im};
}
template <class T>
PLAIT_INLINE Pair<T> exchanged(Pair<T> a) {
  return {a.im, a.re};
}
template <class T>
PLAIT_INLINE Pair<T> at(const T *x, int64_t i) {
  const T *p = x + i * 2 * kLanes<T>;
  return {load(p), load(p + kLanes<T>)};
}
template <class T>
PLAIT_INLINE void put(T *x, int64_t i, Pair<T> v) {
  T *p = x + i * 2 * kLanes<T>;
  store(p, v.re);
  store(p + kLanes<T>, v.im);
}
template <class T>
PLAIT_INLINE Pair<T> both(T re, T im) {
  return {splat(re), splat(im)};
}

// Discrete Fourier transforms of R numbers in registers.
template <class T>
PLAIT_INLINE void butterfly_2(Pair<T> &a, Pair<T> &b) {
  const Pair<T> t = a - b;
  a = a + b;
  b = t;
}
template <class T>
PLAIT_INLINE void butterfly_4(Pair<T> &a, Pair<T> &b, Pair<T> &c, Pair<T> &d) {
  const Pair<T> s = a + c, t = a - c, u = b + d, v = times_minus_i(b - d);
  a = s + u;
  b = t + v;
  c = s - u;
  d = t - v;
}
template <class T, int R>
PLAIT_INLINE void butterfly(Pair<T> (&a)[R]) {
  if constexpr (R == 2) {
    butterfly_2(a[0], a[1]);
  } else if constexpr (R == 3) {
    const Vec<T> half = splat(T(-0.5)), root = splat(T(0.86602540378443864676));
    const Pair<T> s = a[1] + a[2], d = scaled(times_minus_i(a[1] - a[2]), root);
    const Pair<T> m = {fused(half, s.re, a[0].re), fused(half, s.im, a[0].im)};
    a[0] = a[0] + s;
    a[1] = m + d;
    a[2] = m - d;
  } else if constexpr (R == 4) {
    butterfly_4(a[0], a[1], a[2], a[3]);
  } else if constexpr (R == 5) {
    const Vec<T> c1 = splat(T(0.30901699437494742410)), c2 = splat(T(-0.80901699437494742410));
    const Vec<T> s1 = splat(T(0.95105651629515357212)), s2 = splat(T(0.58778525229247312917));
    const Pair<T> s = a[1] + a[4], d = a[1] - a[4], u = a[2] + a[3], v = a[2] - a[3], o = a[0];
    const Pair<T> m = {fused(c2, u.re, fused(c1, s.re, o.re)),
                       fused(c2, u.im, fused(c1, s.im, o.im))};
    const Pair<T> n = {fused(c1, u.re, fused(c2, s.re, o.re)),
                       fused(c1, u.im, fused(c2, s.im, o.im))};
    const Pair<T> p = {fused(s2, v.im, s1 * d.im), -fused(s2, v.re, s1 * d.re)};
    const Pair<T> q = {fused(-s1, v.im, s2 * d.im), fused(s1, v.re, -(s2 * d.re))};
    a[0] = o + s + u;
    a[1] = m + p;
    a[2] = n + q;
    a[3] = n - q;
    a[4] = m - p;
  } else {
    static_assert(R == 8);
    butterfly_4(a[0], a[2], a[4], a[6]);
    butterfly_4(a[1], a[3], a[5], a[7]);
    const Vec<T> root = splat(T(0.70710678118654752440));
    const Pair<T> x = a[3], z = a[7];
    const Pair<T> p = {(x.re + x.im) * root, (x.im - x.re) * root};
    const Pair<T> q = times_minus_i(a[5]);
    const Pair<T> r = {(z.im - z.re) * root, -((z.re + z.im) * root)};
    const Pair<T> e0 = a[0], e1 = a[2], e2 = a[4], e3 = a[6], o0 = a[1];
    a[0] = e0 + o0;
    a[4] = e0 - o0;
    a[1] = e1 + p;
    a[5] = e1 - p;
    a[2] = e2 + q;
    a[6] = e2 - q;
    a[3] = e3 + r;
    a[7] = e3 - r;
  }
}

// One pass from x to y: `before` is the product of the radices before, `rest` that of those after.
template <class T, int R>
PLAIT_NOINLINE void pass(const T *x, T *y, int64_t before, int64_t rest, const T *w) {
  constexpr int64_t size = 2 * kLanes<T>;
  const int64_t apart = before * rest;
  Pair<T> root[R];
  for (int64_t p = 0; p < rest; p++, w += 2 * (R - 1)) {
    PLAIT_UNROLL for (int k = 1; k < R; k++) root[k] = both<T>(w[2 * k - 2], w[2 * k - 1]);
    const T *from = x + p * before * size;
    T *to = y + p * R * before * size;
    for (int64_t q = 0; q < before; q++) {
      Pair<T> a[R];
      PLAIT_UNROLL for (int k = 0; k < R; k++) a[k] = at(from, q + k * apart);
      butterfly<T, R>(a);
      put(to, q, a[0]);
      if (p == 0) {
        PLAIT_UNROLL for (int k = 1; k < R; k++) put(to, q + k * before, a[k]);
      } else {
        PLAIT_UNROLL for (int k = 1; k < R; k++) put(to, q + k * before, times(a[k], root[k]));
      }
    }
  }
}

// The same for an odd radix: sums and differences of the elements k and radix - k meet the cosines
// and the sines. The last 2 (radix - 1) numbers of `w` are the roots of the radix itself.
template <class T>
PLAIT_NOINLINE void odd_pass(const T *x, T *y, int64_t before, int64_t rest, int radix,
                             const T *w) {
  constexpr int64_t size = 2 * kLanes<T>;
  const int64_t apart = before * rest;
  const int half = (radix - 1) / 2;
  const T *own = w + rest * 2 * (radix - 1);
  Pair<T> sum[kMostRadix / 2 + 1], difference[kMostRadix / 2 + 1];
  for (int64_t p = 0; p < rest; p++, w += 2 * (radix - 1)) {
    const T *from = x + p * before * size;
    T *to = y + p * radix * before * size;
    for (int64_t q = 0; q < before; q++) {
      const Pair<T> first = at(from, q);
      Pair<T> all = first;
      for (int k = 1; k <= half; k++) {
        const Pair<T> a = at(from, q + k * apart), b = at(from, q + (radix - k) * apart);
        sum[k] = a + b;
        difference[k] = a - b;
        all = all + sum[k];
      }
      put(to, q, all);
      for (int j = 1; j <= half; j++) {
        Pair<T> s = first, d = {};
        for (int k = 1, turn = 0; k <= half; k++) {
          turn += j;
          if (turn >= radix) turn -= radix;
          const Vec<T> c = splat(own[2 * turn - 2]), minus_s = splat(own[2 * turn - 1]);
          s = {fused(c, sum[k].re, s.re), fused(c, sum[k].im, s.im)};
          d = {fused(minus_s, difference[k].re, d.re), fused(minus_s, difference[k].im, d.im)};
        }
        d = times_i(d);
        const Pair<T> u = both<T>(w[2 * j - 2], w[2 * j - 1]);
        const Pair<T> v = both<T>(w[2 * (radix - j) - 2], w[2 * (radix - j) - 1]);
        put(to, q + j * before, times(s + d, u));
        put(to, q + (radix - j) * before, times(s - d, v));
      }
    }
  }
}

// Transforms `length` elements of x; y has room for as many. Returns where the result is.
template <class T>
T *run_passes(const Plan<T> &plan, T *x, T *y) {
  int64_t before = 1, rest = plan.length;
  for (int i = 0; i < plan.passes; i++) {
    const int radix = plan.radix[i];
    const T *w = plan.twiddles[i];
    rest /= radix;
    switch (radix) {
      case 2: pass<T, 2>(x, y, before, rest, w); break;
      case 3: pass<T, 3>(x, y, before, rest, w); break;
      case 4: pass<T, 4>(x, y, before, rest, w); break;
      case 5: pass<T, 5>(x, y, before, rest, w); break;
      case 8: pass<T, 8>(x, y, before, rest, w); break;
      default: odd_pass<T>(x, y, before, rest, radix, w);
    }
    before *= radix;
    T *other = x;
    x = y;
    y = other;
  }
  return x;
}

}  // namespace plait::core::fft
