// Dropout: elements are set to 0 with probability p, the others are scaled by 1 / (1 - p).
#include "random/random.h"

namespace plait::core {
namespace {

template <class T>
void drop(const plait_call *c, const T *x, T *y, uint8_t *kept, int64_t n, double p) {
  const uint64_t below = threshold(1 - p);
  const T scale = p < 1 ? T(1 / (1 - p)) : T(0);
  const Stream s(c, ceil_div(n, kWords) * kPhiloxBlocks);
  parallel_ranges(c, ceil_div(n, kWords), kChunk / kWords, [&](int64_t begin, int64_t end) {
    uint32_t w[kWords];
    for (int64_t g = begin; g < end; g++) {
      s.words(g * kPhiloxBlocks, w);
      const int64_t first = g * kWords, left = n - first < kWords ? n - first : kWords;
      for (int64_t i = 0; i < left; i++) kept[first + i] = w[i] < below;
      for (int64_t i = 0; i < left; i++) y[first + i] = w[i] < below ? x[first + i] * scale : T(0);
    }
  });
}

plait_status native_dropout(
    plait_call *c) {  // native_dropout(input, p, *, generator) -> (output, mask)
  const DLTensor *x = tensor(c, 0);
  if (!is_contiguous(x) || !is_contiguous(result(c, 0)) || !is_contiguous(result(c, 1)))
    return PLAIT_DECLINE;
  PLAIT_FLOATING(kind(x->dtype), drop<T>(c, data<T>(x), data<T>(result(c, 0)),
                                         data<uint8_t>(result(c, 1)), numel(x), real(c, 1)))
  return PLAIT_OK;
}
PLAIT_KERNEL("native_dropout", native_dropout);

template <class T>
void keep(const plait_call *c, const T *g, const uint8_t *kept, T *y, int64_t n, T scale) {
  parallel_ranges(c, n, kSerial, [&](int64_t begin, int64_t end) {
#pragma GCC ivdep
    for (int64_t i = begin; i < end; i++) y[i] = g[i] * (T(kept[i]) * scale);
  });
}

// native_dropout_backward(grad_output, mask, scale)
plait_status native_dropout_backward(plait_call *c) {
  const DLTensor *g = tensor(c, 0), *kept = tensor(c, 1);
  DLTensor *y = result(c);
  if (!is_contiguous(g) || !is_contiguous(kept) || !is_contiguous(y)) return PLAIT_DECLINE;
  PLAIT_FLOATING(kind(g->dtype),
                 keep<T>(c, data<T>(g), data<uint8_t>(kept), data<T>(y), numel(g), T(real(c, 2))))
  return PLAIT_OK;
}
PLAIT_KERNEL("native_dropout_backward", native_dropout_backward);

}  // namespace
}  // namespace plait::core
