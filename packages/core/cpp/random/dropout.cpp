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

}  // namespace
}  // namespace plait::core
