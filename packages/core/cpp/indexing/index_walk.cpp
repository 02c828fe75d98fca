#include "indexing/index_walk.h"

namespace plait::core {

plait_status check_indices(const plait_call *c, const char *argument, const DLTensor *index,
                           int64_t n) {
  Plan p;
  p.add(index, 8);
  if (p.numel == 0) return PLAIT_OK;
  p.finish();
  if (p.ndim == 1 && p.stride[0][0] == 8 && p.numel > kSerial) {
    bool fit = true;
    const char *row = p.data[0];
    parallel_ranges(c, p.numel, kSerial, [&](int64_t begin, int64_t end) {
      if (!all_within(row + begin * 8, end - begin, 8, n))
        __atomic_store_n(&fit, false, __ATOMIC_RELAXED);
    });
    if (fit) return PLAIT_OK;
  }
  int64_t at[PLAIT_MAX_DIMS + 1];
  char *q[kMaxOperands];
  p.seek(0, at, q);
  const int last = p.ndim - 1;
  for (int64_t done = 0; done < p.numel; done += p.size[last], p.next_row(at, q)) {
    const char *row = q[0];
    const int64_t step = p.stride[0][last];
    const bool fits =
        step == 8 ? all_within(row, p.size[last], 8, n) : all_within(row, p.size[last], step, n);
    for (int64_t i = 0; !fits && i < p.size[last]; i++) {
      const int64_t v = *reinterpret_cast<const int64_t *>(row + i * step);
      if (v < -n || v >= n)
        return PLAIT_FAIL(
            c, PLAIT_INDEX_ERROR,
            "`%s` must be in [-%lld, %lld); got %lld. index out of range: it is out of bounds",
            argument, (long long)n, (long long)n, (long long)v);
    }
  }
  return PLAIT_OK;
}

}  // namespace plait::core
