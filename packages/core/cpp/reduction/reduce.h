// The shape of a reduction: which positions of the input make one element of the result.
#ifndef PLAIT_CORE_REDUCE_H
#define PLAIT_CORE_REDUCE_H
#include "kernel/kernel.h"

namespace plait::core {

struct Axes {  // merged dimensions; strides in elements
  int ndim = 0;
  int64_t count = 1;
  int64_t size[PLAIT_MAX_DIMS], stride[PLAIT_MAX_DIMS];
  void push(int64_t n, int64_t s);  // an inner dimension; merged with the last one where possible
  int64_t offset(int64_t linear) const {
    int64_t at = 0;
    for (int d = ndim - 1; d > 0; d--) {
      at += linear % size[d] * stride[d];
      linear /= size[d];
    }
    return ndim ? at + linear * stride[0] : 0;
  }
  int64_t inner_size() const { return ndim ? size[ndim - 1] : 1; }
  int64_t inner_stride() const { return ndim ? stride[ndim - 1] : 1; }
};

struct Reduction {
  const char *data;
  Axes kept, reduced;  // kept in the result's order; reduced with the smallest stride last

  // Calls f(offset, n, stride) for the runs that make up positions [begin, end) of one result's
  // elements.
  template <class F>
  PLAIT_INLINE void spans(int64_t begin, int64_t end, F &&f) const {
    const int64_t n = reduced.inner_size(), step = reduced.inner_stride();
    const bool one_run = reduced.ndim <= 1;
    while (begin < end) {  // one call of f in the source, as it is inlined
      const int64_t rest = one_run ? end - begin : n - begin % n;
      const int64_t m = end - begin < rest ? end - begin : rest;
      f(one_run ? begin * step : reduced.offset(begin), m, step);
      begin += m;
    }
  }
  // Calls f(pointer, n, stride) for the runs that `spans` finds.
  template <class T, class F>
  PLAIT_INLINE void runs(const T *base, int64_t begin, int64_t end, F &&f) const {
    spans(begin, end, [&](int64_t at, int64_t n, int64_t step) { f(base + at, n, step); });
  }
};

// Bits of the dimensions that argument i (int, int[] or None: all) names.
inline uint64_t all_dims(int ndim) { return ndim >= 64 ? ~uint64_t(0) : (uint64_t(1) << ndim) - 1; }
uint64_t dims_mask(const plait_call *c, int i, int ndim);

enum class Layout {
  kAny,  // any layout; the order of the reduced positions is free
  kRuns,  // the innermost reduced dimension is contiguous
  kRow,  // the reduced positions are one contiguous run, in C order
};

// Whether the strides of the reduced dimensions decrease, so that the order of their positions is
// C order.
bool is_in_order(const DLTensor *t, uint64_t mask);

// Describes the reduction of t as it lies.
void describe(const DLTensor *t, uint64_t mask, Reduction *r);

// Describes the reduction of t: a view of it where dtype and layout fit, else of a copy that
// `space` owns.
plait_status prepare(const plait_call *c, const DLTensor *t, uint64_t mask, Kind to, Layout layout,
                     Workspace *space, Reduction *r);

}  // namespace plait::core
#endif  // PLAIT_CORE_REDUCE_H
