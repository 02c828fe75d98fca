// Pooling of images: max_pool2d with the indices of the largest elements, avg_pool2d, and their
// derivatives.
#include "convolution/convolution.h"
#include "kernel/dense.h"
#include "pooling/pooling_2x2.h"
#include "reduction/rows.h"

namespace plait::core {
namespace {

struct Pool {
  int64_t planes, h, w, oh, ow;
  int64_t kh, kw, sh, sw, ph, pw, dh, dw;
  bool halves() const {  // windows of 2 x 2 side by side
    return kh == 2 && kw == 2 && sh == 2 && sw == 2 && ph == 0 && pw == 0 && dh == 1 && dw == 1 &&
           2 * oh <= h && 2 * ow <= w;
  }
};

struct Pair {
  int64_t y, x;
};
Pair pair(const plait_call *c, int i, Pair absent) {
  const plait_value &v = c->in[i];
  if (v.tag == PLAIT_NONE) return absent;
  return v.tag == PLAIT_INTS ? Pair{v.u.is[0], v.u.is[v.n > 1]} : Pair{v.u.i, v.u.i};
}

// The geometry from arguments `at` and following: kernel_size, stride, padding, and dilation if
// `dilated`.
Pool geometry(const plait_call *c, int at, bool dilated, const int64_t *in, const int64_t *out,
              int ndim) {
  const Pair k = pair(c, at, {1, 1}), s = pair(c, at + 1, k), p = pair(c, at + 2, {0, 0});
  const Pair d = dilated ? pair(c, at + 3, {1, 1}) : Pair{1, 1};
  int64_t planes = 1;
  for (int i = 0; i < ndim - 2; i++) planes *= in[i];
  return {planes, in[ndim - 2], in[ndim - 1], out[ndim - 2], out[ndim - 1], k.y, k.x,
          s.y,    s.x,          p.y,          p.x,           d.y,           d.x};
}
int64_t grain(const Pool &v) { return kSerial / (v.h * v.w + 1) + 1; }

// max_pool2d and its derivative.

template <class T>
// NaN counts as the largest; the first of equal elements is kept
PLAIT_INLINE bool better(T x, T best) {
  return (x > best) | ((x != x) & (best == best));
}

template <class T>
void max_plane(const Pool &v, const T *x, T *y, int64_t *where) {
  for (int64_t i = 0; i < v.oh; i++)
    for (int64_t j = 0; j < v.ow; j++) {
      const int64_t top = i * v.sh - v.ph, left = j * v.sw - v.pw;
      int64_t at = -1;
      for (int64_t r = top, a = 0; a < v.kh; a++, r += v.dh) {
        if (r < 0 || r >= v.h) continue;
        for (int64_t q = left, b = 0; b < v.kw; b++, q += v.dw)
          if (q >= 0 && q < v.w && (at < 0 || better(x[r * v.w + q], x[at]))) at = r * v.w + q;
      }
      // A dilated window may lie outside of the image: its index is -1, which gets no gradient.
      where[i * v.ow + j] = at;
      y[i * v.ow + j] = at < 0 ? lowest<T>() : x[at];
    }
}

template <int L>
void max_row(const Pool &v, const float *row, int64_t at, float *y, int64_t *where) {
  for (int64_t j = 0; j < v.ow; j += L) {
    if (j + L > v.ow) j = v.ow - L;  // the last block may overlap the one before
    Windows<L>::largest(row + 2 * j, v.w, int32_t(at + 2 * j), y + j, where + j);
  }
}

void max_plane_halves(const Pool &v, const float *x, float *y, int64_t *where) {
  for (int64_t i = 0; i < v.oh; i++) {
    const int64_t at = 2 * i * v.w;
    if (v.ow >= 8) {
      max_row<8>(v, x + at, at, y + i * v.ow, where + i * v.ow);
    } else {
      max_row<4>(v, x + at, at, y + i * v.ow, where + i * v.ow);
    }
  }
}

plait_status max_pool2d(plait_call *c) {
  const DLTensor *in = tensor(c, 0);
  DLTensor *out = result(c), *where = result(c, 1);
  if (numel(out) == 0) return PLAIT_OK;
  const Pool v = geometry(c, 1, true, in->shape, out->shape, in->ndim);
  PLAIT_NUMERIC(kind(in->dtype), {
    Dense<T> x;
    PLAIT_TRY(x.take(c, in));
    const T *from = x;
    const bool fast =
        sizeof(T) == 4 && is_float<T> && v.halves() && v.ow >= 4 && v.h * v.w < INT32_MAX;
    parallel_ranges(c, v.planes, grain(v), [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; p++) {
        const T *image = from + p * v.h * v.w;
        T *to = data<T>(out) + p * v.oh * v.ow;
        int64_t *indices = data<int64_t>(where) + p * v.oh * v.ow;
        if (fast) {
          max_plane_halves(v, reinterpret_cast<const float *>(image), reinterpret_cast<float *>(to),
                           indices);
        } else {
          max_plane(v, image, to, indices);
        }
      }
    });
  })
  return PLAIT_OK;
}

template <int L>
bool spread_row(const float *g, const int64_t *where, int64_t ow, int64_t w, int64_t at,
                float *gx) {
  typename Windows<L>::Ints bad = {};
  for (int64_t j = 0; j < ow; j += L) {
    if (j + L > ow) j = ow - L;
    bad |= Windows<L>::spread(g + j, where + j, w, at + 2 * j, gx + 2 * j);
  }
  return !Windows<L>::any(bad);
}

// Writes grad at the indices of the 2 x 2 windows, and 0 elsewhere. Returns false if an index lies
// outside of its window.
bool spread_halves(const float *g, const int64_t *where, int64_t oh, int64_t ow, int64_t h,
                   int64_t w, float *gx) {
  bool good = true;
  for (int64_t i = 0; i < oh; i++) {
    const int64_t at = 2 * i * w;
    good &= ow >= 8 ? spread_row<8>(g + i * ow, where + i * ow, ow, w, at, gx + at)
                    : spread_row<4>(g + i * ow, where + i * ow, ow, w, at, gx + at);
    for (int64_t j = 2 * ow; j < w; j++) gx[at + j] = gx[at + w + j] = 0.0f;
  }
  if (h > 2 * oh) memset(gx + 2 * oh * w, 0, size_t((h - 2 * oh) * w) * sizeof(float));
  return good;
}

template <class T>
bool spread(const T *g, const int64_t *where, int64_t n, int64_t area, T *gx) {
  memset(gx, 0, size_t(area) * sizeof(T));
  for (int64_t j = 0; j < n; j++) {
    if (where[j] == -1) continue;
    if (uint64_t(where[j]) >= uint64_t(area)) return false;
    gx[where[j]] += g[j];
  }
  return true;
}

// max_pool2d_backward(grad, indices, size)
plait_status max_pool2d_backward(plait_call *c) {
  const DLTensor *grad = tensor(c, 0), *where = tensor(c, 1);
  DLTensor *out = result(c);
  if (numel(out) == 0) return PLAIT_OK;
  const int n = out->ndim;
  const int64_t h = out->shape[n - 2], w = out->shape[n - 1], oh = grad->shape[n - 2],
                ow = grad->shape[n - 1];
  const int64_t planes = numel(out) / (h * w);
  Dense<int64_t> indices;
  PLAIT_TRY(indices.take(c, where));
  int bad = 0;
  PLAIT_FLOATING(kind(out->dtype), {
    Dense<T> gy;
    PLAIT_TRY(gy.take(c, grad));
    const T *from = gy;
    const int64_t *at = indices;
    const bool halves =
        sizeof(T) == 4 && h / 2 == oh && w / 2 == ow && ow >= 4 && h * w < INT32_MAX;
    parallel_ranges(c, planes, kSerial / (h * w) + 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; p++) {
        const T *g = from + p * oh * ow;
        const int64_t *q = at + p * oh * ow;
        T *gx = data<T>(out) + p * h * w;
        if (halves && spread_halves(reinterpret_cast<const float *>(g), q, oh, ow, h, w,
                                    reinterpret_cast<float *>(gx)))
          continue;
        if (!spread(g, q, oh * ow, h * w, gx)) __atomic_store_n(&bad, 1, __ATOMIC_RELAXED);
      }
    });
  })
  if (bad)
    return PLAIT_FAIL(c, PLAIT_INDEX_ERROR,
                      "`indices` must be in [0, %lld) for images of %lld x %lld elements",
                      (long long)(h * w), (long long)h, (long long)w);
  return PLAIT_OK;
}

// avg_pool2d and its derivative.

struct Window {
  int64_t top, bottom, left, right;  // inside the image
  int64_t count;                     // the divisor of the sum
};
Window window(const Pool &v, int64_t i, int64_t j, bool with_padding) {
  const int64_t y = i * v.sh - v.ph, x = j * v.sw - v.pw;
  auto least = [](int64_t a, int64_t b) { return a < b ? a : b; };
  auto most = [](int64_t a, int64_t b) { return a > b ? a : b; };
  const int64_t below = least(y + v.kh, v.h + v.ph), beside = least(x + v.kw, v.w + v.pw);
  Window q{most(y, 0), least(below, v.h), most(x, 0), least(beside, v.w),
           (below - y) * (beside - x)};
  if (!with_padding) q.count = (q.bottom - q.top) * (q.right - q.left);
  return q;
}

template <class T>
void average_plane(const Pool &v, bool with_padding, const T *x, T *y) {
  for (int64_t i = 0; i < v.oh; i++)
    for (int64_t j = 0; j < v.ow; j++) {
      const Window q = window(v, i, j, with_padding);
      T sum = T(0);
      for (int64_t r = q.top; r < q.bottom; r++)
        for (int64_t s = q.left; s < q.right; s++) sum += x[r * v.w + s];
      y[i * v.ow + j] = sum / T(q.count);
    }
}

template <class T>
void average_plane_backward(const Pool &v, bool with_padding, const T *g, T *gx) {
  memset(gx, 0, size_t(v.h * v.w) * sizeof(T));
  for (int64_t i = 0; i < v.oh; i++)
    for (int64_t j = 0; j < v.ow; j++) {
      const Window q = window(v, i, j, with_padding);
      const T share = g[i * v.ow + j] / T(q.count);
      for (int64_t r = q.top; r < q.bottom; r++)
        for (int64_t s = q.left; s < q.right; s++) gx[r * v.w + s] += share;
    }
}

// avg_pool2d(input, kernel_size, stride, padding, ceil_mode, count_include_pad)
plait_status avg_pool2d(plait_call *c) {
  const DLTensor *in = tensor(c, 0);
  DLTensor *out = result(c);
  if (numel(out) == 0) return PLAIT_OK;
  const Pool v = geometry(c, 1, false, in->shape, out->shape, in->ndim);
  const bool with_padding = integer(c, 5, 1);
  PLAIT_FLOATING(kind(out->dtype), {
    Dense<T> x;
    PLAIT_TRY(x.take(c, in));
    const T *from = x;
    parallel_ranges(c, v.planes, grain(v), [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; p++)
        average_plane(v, with_padding, from + p * v.h * v.w, data<T>(out) + p * v.oh * v.ow);
    });
  })
  return PLAIT_OK;
}

// avg_pool2d_backward(grad, size, kernel_size, stride, padding, ceil_mode, count_include_pad)
plait_status avg_pool2d_backward(plait_call *c) {
  const DLTensor *grad = tensor(c, 0);
  DLTensor *out = result(c);
  if (numel(out) == 0) return PLAIT_OK;
  const Pool v = geometry(c, 2, false, out->shape, grad->shape, out->ndim);
  const bool with_padding = integer(c, 6, 1);
  PLAIT_FLOATING(kind(out->dtype), {
    Dense<T> g;
    PLAIT_TRY(g.take(c, grad));
    const T *from = g;
    parallel_ranges(c, v.planes, grain(v), [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; p++)
        average_plane_backward(v, with_padding, from + p * v.oh * v.ow,
                               data<T>(out) + p * v.h * v.w);
    });
  })
  return PLAIT_OK;
}

PLAIT_KERNEL("max_pool2d_with_indices", max_pool2d);
PLAIT_KERNEL("max_pool2d_backward", max_pool2d_backward);
PLAIT_KERNEL("avg_pool2d", avg_pool2d);
PLAIT_KERNEL("avg_pool2d_backward", avg_pool2d_backward);

}  // namespace
}  // namespace plait::core
