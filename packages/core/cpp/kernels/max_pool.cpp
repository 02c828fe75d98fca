// max_pool2d_with_indices and its gradient. One plane (h, w) at a time; 2x2 windows with stride 2
// have a loop of their own.
#include "kernels/indices.h"

namespace plait::core {
namespace {

struct Window {
  int64_t h, w, oh, ow, kh, kw, sh, sw, ph, pw, dh, dw;
  Window(const plait_call *c, const DLTensor *input, const DLTensor *out) {
    const auto pair = [c](int i, int k) { return c->in[i].u.is[k]; };
    h = input->shape[2], w = input->shape[3], oh = out->shape[2], ow = out->shape[3];
    kh = pair(1, 0), kw = pair(1, 1);
    const int stride = c->in[2].tag == PLAIT_INTS ? 2 : 1;
    sh = pair(stride, 0), sw = pair(stride, 1);
    ph = pair(3, 0), pw = pair(3, 1), dh = pair(4, 0), dw = pair(4, 1);
  }
  bool halves() const {
    return kh == 2 && kw == 2 && sh == 2 && sw == 2 && !ph && !pw && dh == 1 && dw == 1 &&
           2 * oh <= h && 2 * ow <= w;
  }
};

// The first of equal elements counts and NaN wins: (b > a || b is NaN), unless a is NaN already.
template <class T>
PLAIT_INLINE bool beats(T b, T a) {
  return (b > a) | ((b != b) & (a == a));
}

template <class T>
void plane_of_halves(const Window &v, const T *x, int64_t row, T *y, int64_t *at) {
  for (int64_t i = 0; i < v.oh; i++) {
    const T *a = x + 2 * i * row, *b = a + row;
    const int64_t first = 2 * i * v.w;
    for (int64_t j = 0; j < v.ow; j++) {
      const T p = a[2 * j], q = a[2 * j + 1], r = b[2 * j], s = b[2 * j + 1];
      const int64_t upper = beats(q, p), lower = v.w + int64_t(beats(s, r));
      const T best_upper = beats(q, p) ? q : p, best_lower = beats(s, r) ? s : r;
      const bool down = beats(best_lower, best_upper);
      y[i * v.ow + j] = down ? best_lower : best_upper;
      at[i * v.ow + j] = first + 2 * j + (down ? lower : upper);
    }
  }
}

template <class T>
void plane(const Window &v, const T *x, int64_t row, int64_t column, T *y, int64_t *at) {
  for (int64_t i = 0; i < v.oh; i++) {
    for (int64_t j = 0; j < v.ow; j++) {
      T best = 0;
      int64_t where = -1;
      for (int64_t a = 0; a < v.kh; a++) {
        const int64_t r = i * v.sh - v.ph + a * v.dh;
        if (r < 0 || r >= v.h) continue;
        for (int64_t b = 0; b < v.kw; b++) {
          const int64_t q = j * v.sw - v.pw + b * v.dw;
          if (q < 0 || q >= v.w) continue;
          const T value = x[r * row + q * column];
          if (where >= 0 && !beats(value, best)) continue;
          best = value;
          where = r * v.w + q;
        }
      }
      y[i * v.ow + j] = where < 0 ? -T(__builtin_inff()) : best;
      at[i * v.ow + j] = where < 0 ? 0 : where;
    }
  }
}

template <class T>
void pool(const plait_call *c, const DLTensor *x, DLTensor *y, DLTensor *at) {
  const Window v(c, x, y);
  const int64_t channels = x->shape[1], each = v.oh * v.ow;
  const bool halves = v.halves() && x->strides[3] == 1;
  parallel_ranges(
      c, x->shape[0] * channels, ceil_div(kChunk, v.h * v.w + 1), [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; p++) {
          const T *from = data<T>(x) + p / channels * x->strides[0] + p % channels * x->strides[1];
          T *to = data<T>(y) + p * each;
          int64_t *index = data<int64_t>(at) + p * each;
          if (halves)
            plane_of_halves(v, from, x->strides[2], to, index);
          else
            plane(v, from, x->strides[2], x->strides[3], to, index);
        }
      });
}

plait_status max_pool2d(plait_call *c) {
  const DLTensor *x = tensor(c, 0);
  PLAIT_FLOATING(kind(x->dtype), pool<T>(c, x, result(c, 0), result(c, 1)))
  return PLAIT_OK;
}
PLAIT_KERNEL("max_pool2d_with_indices", max_pool2d);

template <class T>
void spread(const plait_call *c, const DLTensor *gy, const Indices &at, DLTensor *gx) {
  const int64_t channels = gx->shape[1], plane = gx->shape[2] * gx->shape[3],
                each = gy->shape[2] * gy->shape[3];
  parallel_ranges(
      c, gx->shape[0] * channels, ceil_div(kChunk, plane + 1), [&](int64_t begin, int64_t end) {
        memset(data<T>(gx) + begin * plane, 0, size_t((end - begin) * plane) * sizeof(T));
        for (int64_t p = begin; p < end; p++) {
          const T *from =
              data<T>(gy) + p / channels * gy->strides[0] + p % channels * gy->strides[1];
          T *to = data<T>(gx) + p * plane;
          for (int64_t i = 0, k = p * each; i < gy->shape[2]; i++)
            for (int64_t j = 0; j < gy->shape[3]; j++, k++)
              to[at[k]] += from[i * gy->strides[2] + j * gy->strides[3]];
        }
      });
}

plait_status max_pool2d_backward(plait_call *c) {
  const DLTensor *gy = tensor(c, 0);
  DLTensor *gx = result(c);
  Indices at;
  PLAIT_TRY(at.read(c, tensor(c, 1), gx->shape[2] * gx->shape[3], 2));
  PLAIT_FLOATING(kind(gy->dtype), spread<T>(c, gy, at, gx))
  return PLAIT_OK;
}
PLAIT_KERNEL("max_pool2d_backward", max_pool2d_backward);

}  // namespace
}  // namespace plait::core
