// Pooling in two dimensions and its derivatives: a thread for each result. Derivatives gather what
// the windows over an element give, in the order of the windows, so their bits do not vary.
#include "block/block.h"
#include "host/walk.h"
#if PLAIT_HOST
#include "host/dense.h"
#endif

namespace plait::cuda {

enum Numbers : int32_t { kNoNumbers, kInWindow, kInImage };

struct PoolArgs {
  const void *from;     // images, or gradients of the results
  const void *numbers;  // of largest elements within their windows: the derivative reads them
  void *to, *where;
  int64_t n;  // elements of `to`
  int32_t h, w, oh, ow, kh, kw, sh, sw, ph, pw, dh, dw;
  int32_t is_large;  // 2^31 elements or more
  Numbers kind;      // of `where`
  int32_t with_padding;  // a window counts the padding that it covers
  Divider by_area, by_width;  // of `to`
  Divider by_sh, by_sw, by_dh, by_dw;
};

#if PLAIT_KERNELS

struct PoolPlace {
  int64_t plane;
  int32_t y, x;
};
PLAIT_DEVICE PoolPlace pool_place(const PoolArgs &a, int64_t i) {
  const uint32_t area = a.by_area.divisor;
  const int64_t plane = a.is_large ? i / area : int64_t(quotient(a.by_area, uint32_t(i)));
  const uint32_t at = uint32_t(i - plane * area), y = quotient(a.by_width, at);
  return {plane, int32_t(y), int32_t(at - y * a.by_width.divisor)};
}

template <class T>
PLAIT_DEVICE T lowest_of() {
  if constexpr (std::is_same_v<T, float>) {
    return -__builtin_huge_valf();
  } else if constexpr (std::is_same_v<T, double>) {
    return -__builtin_huge_val();
  } else if constexpr (scalar::math::is_signed<T>) {
    return T(T(1) << (8 * sizeof(T) - 1));
  } else {
    return T(0);
  }
}

// nan counts as the largest; the first of equal elements is kept.
template <class E>
PLAIT_DEVICE void max_pool(Thread &t, const PoolArgs &a) {
  using T = Compute<E>;
  const auto from = t.global<const E>(a.from);
  const auto to = t.global<E>(a.to);
  for (int64_t i = t.index(); i < a.n; i += t.stride()) {
    const PoolPlace p = pool_place(a, i);
    const int64_t start = p.plane * a.h * a.w;
    T best = lowest_of<T>();
    int32_t number = -1, place = -1;
    for (int32_t r = 0; r < a.kh; r++) {
      const int32_t y = p.y * a.sh - a.ph + r * a.dh;
      if (y < 0 || y >= a.h) continue;
      for (int32_t s = 0; s < a.kw; s++) {
        const int32_t x = p.x * a.sw - a.pw + s * a.dw;
        if (x < 0 || x >= a.w) continue;
        const T v = widen(from.load(start + int64_t(y) * a.w + x));
        if (number < 0 || v > best || (v != v && best == best))
          best = v, number = r * a.kw + s, place = y * a.w + x;
      }
    }
    to.store(i, narrow<E>(best));
    if (a.kind == kInWindow) t.global<uint8_t>(a.where).store(i, uint8_t(number));
    if (a.kind == kInImage) t.global<int64_t>(a.where).store(i, place);
  }
}

// The windows [first, last] whose rows or columns may cover place `at` of the padded image.
struct PoolSpan {
  int32_t first, last;
};
PLAIT_DEVICE PoolSpan windows_over(int32_t at, int32_t extent, int32_t step, const Divider &by_step,
                                   int32_t count) {
  const int32_t before = at - extent + 1;
  const int32_t first = before <= 0 ? 0 : int32_t(quotient(by_step, uint32_t(before + step - 1)));
  const int32_t last = int32_t(quotient(by_step, uint32_t(at)));
  return {first, last < count ? last : count - 1};
}

// Adds up `part(p, u, v, at)` of all windows (u, v) over each element p of an image; `at` is the
// place of the window's gradient.
template <class E, class F>
PLAIT_DEVICE void sum_over_windows(Thread &t, const PoolArgs &a, F part) {
  using T = Compute<E>;
  const auto to = t.global<E>(a.to);
  for (int64_t i = t.index(); i < a.n; i += t.stride()) {
    const PoolPlace p = pool_place(a, i);
    const int64_t start = p.plane * a.oh * a.ow;
    const PoolSpan rows = windows_over(p.y + a.ph, (a.kh - 1) * a.dh + 1, a.sh, a.by_sh, a.oh);
    const PoolSpan columns = windows_over(p.x + a.pw, (a.kw - 1) * a.dw + 1, a.sw, a.by_sw, a.ow);
    T sum = T(0);
    for (int32_t u = rows.first; u <= rows.last; u++)
      for (int32_t v = columns.first; v <= columns.last; v++)
        sum += part(p, u, v, start + int64_t(u) * a.ow + v);
    to.store(i, narrow<E>(sum));
  }
}

// The row or column of a window at `step` from its first one; -1 if the window leaves it out.
PLAIT_DEVICE int32_t place_in_window(int32_t step, int32_t dilation, const Divider &by_dilation) {
  const int32_t at = int32_t(quotient(by_dilation, uint32_t(step)));
  return at * dilation == step ? at : -1;
}

template <class E>
PLAIT_DEVICE void max_pool_backward(Thread &t, const PoolArgs &a) {
  using T = Compute<E>;
  const auto grad = t.global<const E>(a.from);
  const auto numbers = t.global<const uint8_t>(a.numbers);
  sum_over_windows<E>(t, a, [&](const PoolPlace &p, int32_t u, int32_t v, int64_t at) {
    const int32_t r = place_in_window(p.y + a.ph - u * a.sh, a.dh, a.by_dh);
    const int32_t s = place_in_window(p.x + a.pw - v * a.sw, a.dw, a.by_dw);
    if (r < 0 || s < 0 || int32_t(numbers.load(at)) != r * a.kw + s) return T(0);
    return T(widen(grad.load(at)));
  });
}

// The part of a window that lies in the image, and the divisor of its sum.
struct PoolWindow {
  int32_t top, bottom, left, right, count;
};
PLAIT_DEVICE PoolWindow pool_window(const PoolArgs &a, int32_t i, int32_t j) {
  const int32_t y = i * a.sh - a.ph, x = j * a.sw - a.pw;
  auto least = [](int32_t p, int32_t q) { return p < q ? p : q; };
  auto most = [](int32_t p, int32_t q) { return p > q ? p : q; };
  const int32_t below = least(y + a.kh, a.h + a.ph), beside = least(x + a.kw, a.w + a.pw);
  PoolWindow q{most(y, 0), least(below, a.h), most(x, 0), least(beside, a.w),
               (below - y) * (beside - x)};
  if (!a.with_padding) q.count = (q.bottom - q.top) * (q.right - q.left);
  return q;
}

template <class E>
PLAIT_DEVICE void average_pool(Thread &t, const PoolArgs &a) {
  using T = Compute<E>;
  const auto from = t.global<const E>(a.from);
  const auto to = t.global<E>(a.to);
  for (int64_t i = t.index(); i < a.n; i += t.stride()) {
    const PoolPlace p = pool_place(a, i);
    const PoolWindow q = pool_window(a, p.y, p.x);
    const int64_t start = p.plane * a.h * a.w;
    T sum = T(0);
    for (int32_t y = q.top; y < q.bottom; y++)
      for (int32_t x = q.left; x < q.right; x++)
        sum += widen(from.load(start + int64_t(y) * a.w + x));
    to.store(i, narrow<E>(sum / T(q.count)));
  }
}

template <class E>
PLAIT_DEVICE void average_pool_backward(Thread &t, const PoolArgs &a) {
  using T = Compute<E>;
  const auto grad = t.global<const E>(a.from);
  sum_over_windows<E>(t, a, [&](const PoolPlace &, int32_t u, int32_t v, int64_t at) {
    return T(widen(grad.load(at))) / T(pool_window(a, u, v).count);
  });
}
#endif

PLAIT_DEVICE_KERNEL(max_pool, PoolArgs, 256, NUMERIC);
PLAIT_DEVICE_KERNEL(max_pool_backward, PoolArgs, 256, FLOATING);
PLAIT_DEVICE_KERNEL(average_pool, PoolArgs, 256, FLOATING);
PLAIT_DEVICE_KERNEL(average_pool_backward, PoolArgs, 256, FLOATING);

#if PLAIT_HOST
namespace {

// The geometry from arguments `at` and following: kernel_size, stride, padding, and dilation if
// `dilated`. `to` is the tensor with an element for each thread.
plait_status geometry(const plait_call *c, int at, bool dilated, const DLTensor *image,
                      const DLTensor *pooled, const DLTensor *to, PoolArgs *a) {
  auto pair = [&](int i, int k, int64_t absent) {
    const plait_value &v = c->in[i];
    return int32_t(v.tag == PLAIT_NONE   ? absent
                   : v.tag == PLAIT_INTS ? v.u.is[v.n > 1 ? k : 0]
                                         : v.u.i);
  };
  const int d = image->ndim;
  constexpr int64_t kMost = int64_t(1) << 30;
  if (image->shape[d - 2] * image->shape[d - 1] >= kMost ||
      pooled->shape[d - 2] * pooled->shape[d - 1] >= kMost)
    return PLAIT_FAIL(c, PLAIT_NOT_IMPLEMENTED, "images of %lld x %lld elements have no kernel",
                      (long long)image->shape[d - 2], (long long)image->shape[d - 1]);
  a->h = int32_t(image->shape[d - 2]), a->w = int32_t(image->shape[d - 1]);
  a->oh = int32_t(pooled->shape[d - 2]), a->ow = int32_t(pooled->shape[d - 1]);
  a->kh = pair(at, 0, 1), a->kw = pair(at, 1, 1);
  a->sh = pair(at + 1, 0, a->kh), a->sw = pair(at + 1, 1, a->kw);
  a->ph = pair(at + 2, 0, 0), a->pw = pair(at + 2, 1, 0);
  a->dh = dilated ? pair(at + 3, 0, 1) : 1, a->dw = dilated ? pair(at + 3, 1, 1) : 1;
  a->n = numel(to);
  a->is_large = a->n >= 2 * kMost;
  a->to = to->data;
  a->by_area = divider(to->shape[d - 2] * to->shape[d - 1]),
  a->by_width = divider(to->shape[d - 1]);
  a->by_sh = divider(a->sh), a->by_sw = divider(a->sw);
  a->by_dh = divider(a->dh), a->by_dw = divider(a->dw);
  return PLAIT_OK;
}

// Pools the first argument. `set` adds to the arguments of the kernel.
template <class F>
plait_status pool(const plait_call *c, const DeviceKernel &kernel, bool dilated, F set) {
  const DLTensor *in = tensor(c, 0), *out = result(c);
  if (numel(out) == 0) return PLAIT_OK;
  PoolArgs a{};
  DeviceWorkspace space;
  PLAIT_TRY(geometry(c, 1, dilated, in, out, out, &a));
  PLAIT_TRY(make_dense(c, in, &space, &a.from));
  set(&a);
  return launch(c, kernel, kind(in->dtype), a, blocks_for(c, a.n, 256), 256);
}
// Takes the gradients in the first argument back to the images; their geometry begins at argument
// `at`.
template <class F>
plait_status pool_back(const plait_call *c, const DeviceKernel &kernel, int at, bool dilated,
                       F set) {
  const DLTensor *grad = tensor(c, 0), *out = result(c);
  if (numel(out) == 0) return PLAIT_OK;
  if (numel(grad) == 0) return fill_bytes(c, out->data, 0, numel(out) * size_of(kind(out->dtype)));
  PoolArgs a{};
  DeviceWorkspace space;
  PLAIT_TRY(geometry(c, at, dilated, out, grad, out, &a));
  PLAIT_TRY(make_dense(c, grad, &space, &a.from));
  PLAIT_TRY(set(&a));
  return launch(c, kernel, kind(out->dtype), a, blocks_for(c, a.n, 256), 256);
}

// max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode)
template <Numbers numbers>
plait_status max_pool2d(plait_call *c) {
  return pool(c, max_pool_kernel, true, [c](PoolArgs *a) {
    a->kind = numbers;
    if (numbers != kNoNumbers) a->where = result(c, 1)->data;
  });
}

// native_max_pool2d_backward(grad, numbers, size, kernel_size, stride, padding, dilation)
plait_status native_max_pool2d_backward(plait_call *c) {
  DeviceWorkspace space;
  return pool_back(c, max_pool_backward_kernel, 3, true, [c, &space](PoolArgs *a) {
    return make_dense(c, tensor(c, 1), &space, &a->numbers);
  });
}

// avg_pool2d(input, kernel_size, stride, padding, ceil_mode, count_include_pad)
plait_status avg_pool2d(plait_call *c) {
  return pool(c, average_pool_kernel, false,
              [c](PoolArgs *a) { a->with_padding = integer(c, 5, 1) != 0; });
}

// avg_pool2d_backward(grad, size, kernel_size, stride, padding, ceil_mode, count_include_pad)
plait_status avg_pool2d_backward(plait_call *c) {
  return pool_back(c, average_pool_backward_kernel, 2, false, [c](PoolArgs *a) {
    a->with_padding = integer(c, 6, 1) != 0;
    return PLAIT_OK;
  });
}

PLAIT_KERNEL("max_pool2d", max_pool2d<kNoNumbers>);
PLAIT_KERNEL("native_max_pool2d", max_pool2d<kInWindow>);
PLAIT_KERNEL("native_max_pool2d_backward", native_max_pool2d_backward);
PLAIT_KERNEL("max_pool2d_with_indices", max_pool2d<kInImage>);
PLAIT_KERNEL("avg_pool2d", avg_pool2d);
PLAIT_KERNEL("avg_pool2d_backward", avg_pool2d_backward);

}  // namespace
#endif

}  // namespace plait::cuda
