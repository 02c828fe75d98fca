// unfold_backward(grad, input_size, dim, size, step): windows added up where they came from, in the
// order of their elements.
#include "kernel/copy.h"
#include "kernel/indices.h"

namespace plait::core {
namespace {

struct Windows {
  int64_t count, size, step;  // of windows, of their elements, from a window to the next
  int64_t out_step;  // in elements, as are the next two
  int64_t from_window, from_tap;  // from a window to the next, from one of its elements to the next
};

// All windows of one line of the result, whose elements lie side by side.
template <class T>
void add_line(T *to, const T *from, const Windows &w) {
  const int64_t count = w.count, step = w.step, a = w.from_window;
  for (int64_t k = 0; k < w.size; k++, to++, from += w.from_tap) {
    if (step == 1 && a == 1) {
      for (int64_t i = 0; i < count; i++) to[i] = to[i] + from[i];
    } else {
      for (int64_t i = 0; i < count; i++) to[i * step] = to[i * step] + from[i * a];
    }
  }
}

// All windows of n lines of the result, which lie side by side.
template <class T>
void add_lines(T *to, const T *from, const Windows &w, int64_t n, int64_t from_line) {
  for (int64_t k = 0; k < w.size; k++)
    for (int64_t i = 0; i < w.count; i++) {
      T *row = to + (i * w.step + k) * w.out_step;
      const T *more = from + i * w.from_window + k * w.from_tap;
      if (from_line == 1) {
        for (int64_t j = 0; j < n; j++) row[j] = row[j] + more[j];
      } else {
        for (int64_t j = 0; j < n; j++) row[j] = row[j] + more[j * from_line];
      }
    }
}

template <class T>
void add_windows(const plait_call *c, const DLTensor *grad, DLTensor *out, int dim,
                 const Windows &w) {
  // the other dimensions; the last one is that of the lines side by side, if there is one
  int64_t size[PLAIT_MAX_DIMS], to[PLAIT_MAX_DIMS], from[PLAIT_MAX_DIMS], outer = 1;
  int n = 0;
  for (int d = 0; d < out->ndim; d++) {
    if (d == dim) continue;
    size[n] = out->shape[d];
    to[n] = out->strides[d];
    from[n++] = grad->strides[d];
  }
  const bool lines = dim < out->ndim - 1;
  const int64_t width = lines ? size[n - 1] : 1, from_line = lines ? from[n - 1] : 0;
  n -= lines;
  for (int d = 0; d < n; d++) outer *= size[d];
  const int64_t work = width * w.count * w.size;
  parallel_ranges(c, outer, kSerial / (work + 1) + 1, [&](int64_t begin, int64_t end) {
    Counter q(n, size, to), p(n, size, from);
    q.seek(begin);
    p.seek(begin);
    for (int64_t o = begin; o < end; o++, q.next(), p.next()) {
      T *own = data<T>(out) + q.offset;
      const T *windows = data<T>(grad) + p.offset;
      lines ? add_lines(own, windows, w, width, from_line) : add_line(own, windows, w);
    }
  });
}

plait_status unfold_backward(plait_call *c) {
  const DLTensor *grad = tensor(c, 0);
  DLTensor *out = result(c);
  const Kind k = kind(grad->dtype);
  if ((k != F32 && k != F64) || out->ndim == 0 || !is_contiguous(out)) return PLAIT_DECLINE;
  PLAIT_TRY(fill_with(c, out, 0));
  if (numel(grad) == 0) return PLAIT_OK;
  const int dim = int(wrapped(integer(c, 2), out->ndim));
  const Windows w{grad->shape[dim],  integer(c, 3),      integer(c, 4),
                  out->strides[dim], grad->strides[dim], grad->strides[out->ndim]};
  PLAIT_FLOATING(k, add_windows<T>(c, grad, out, dim, w))
  return PLAIT_OK;
}
PLAIT_KERNEL("unfold_backward", unfold_backward);

}  // namespace
}  // namespace plait::core
