#include "indexing/index_walk.h"

namespace plait::core {

plait_status check_indices(const plait_call *c, const char *argument, const DLTensor *index,
                           int64_t n) {
  Plan p;
  p.add(index, 8);
  if (p.numel == 0) return PLAIT_OK;
  p.finish();
  int64_t at[PLAIT_MAX_DIMS + 1];
  char *q[kMaxOperands];
  p.seek(0, at, q);
  const int last = p.ndim - 1;
  for (int64_t done = 0; done < p.numel; done += p.size[last], p.next_row(at, q)) {
    int bad = 0;
    const char *row = q[0];
    const int64_t step = p.stride[0][last];
    for (int64_t i = 0; i < p.size[last]; i++) {
      const int64_t v = *reinterpret_cast<const int64_t *>(row + i * step);
      bad |= (v < -n) | (v >= n);
    }
    for (int64_t i = 0; bad && i < p.size[last]; i++) {
      const int64_t v = *reinterpret_cast<const int64_t *>(row + i * step);
      if (v < -n || v >= n)
        return PLAIT_FAIL(c, PLAIT_INDEX_ERROR, "`%s` must be in [-%lld, %lld); got %lld", argument,
                          (long long)n, (long long)n, (long long)v);
    }
  }
  return PLAIT_OK;
}

}  // namespace plait::core
