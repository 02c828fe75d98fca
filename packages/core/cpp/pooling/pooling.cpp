// The geometry of pooling, avg_pool2d and its derivative.
#include "pooling/pooling.h"

#include "kernel/dense.h"

namespace plait::core {
namespace {

struct Pair {
  int64_t y, x;
};
Pair pair(const plait_call *c, int i, Pair absent) {
  const plait_value &v = c->in[i];
  if (v.tag == PLAIT_NONE) return absent;
  return v.tag == PLAIT_INTS ? Pair{v.u.is[0], v.u.is[v.n > 1]} : Pair{v.u.i, v.u.i};
}

}  // namespace

Pool pooling(const plait_call *c, int at, bool dilated, const int64_t *in, const int64_t *out,
             int ndim) {
  const Pair k = pair(c, at, {1, 1}), s = pair(c, at + 1, k), p = pair(c, at + 2, {0, 0});
  const Pair d = dilated ? pair(c, at + 3, {1, 1}) : Pair{1, 1};
  int64_t planes = 1;
  for (int i = 0; i < ndim - 2; i++) planes *= in[i];
  return {planes, in[ndim - 2], in[ndim - 1], out[ndim - 2], out[ndim - 1], k.y, k.x,
          s.y,    s.x,          p.y,          p.x,           d.y,           d.x};
}

namespace {

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
  const Pool v = pooling(c, 1, false, in->shape, out->shape, in->ndim);
  const bool with_padding = integer(c, 5, 1);
  PLAIT_FLOATING(kind(out->dtype), {
    Dense<T> x;
    PLAIT_TRY(x.take(c, in));
    const T *from = x;
    parallel_ranges(c, v.planes, v.grain(), [&](int64_t begin, int64_t end) {
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
  const Pool v = pooling(c, 2, false, out->shape, grad->shape, out->ndim);
  const bool with_padding = integer(c, 6, 1);
  PLAIT_FLOATING(kind(out->dtype), {
    Dense<T> g;
    PLAIT_TRY(g.take(c, grad));
    const T *from = g;
    parallel_ranges(c, v.planes, v.grain(), [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; p++)
        average_plane_backward(v, with_padding, from + p * v.oh * v.ow,
                               data<T>(out) + p * v.h * v.w);
    });
  })
  return PLAIT_OK;
}

PLAIT_KERNEL("avg_pool2d", avg_pool2d);
PLAIT_KERNEL("avg_pool2d_backward", avg_pool2d_backward);

}  // namespace
}  // namespace plait::core
