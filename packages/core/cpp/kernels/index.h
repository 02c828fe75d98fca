// Index tensors: int64, negative ones count from the end, all checked before anything is read or
// written.
#ifndef PLAIT_CORE_INDEX_H
#define PLAIT_CORE_INDEX_H
#include "kernels/kernel.h"

namespace plait::core {

// PLAIT_INDEX_ERROR that names the first value outside [-n, n).
plait_status check_indices(const plait_call *c, const char *argument, const DLTensor *index,
                           int64_t n);

PLAIT_INLINE int64_t from_start(int64_t i, int64_t n) { return i < 0 ? i + n : i; }

}  // namespace plait::core
#endif  // PLAIT_CORE_INDEX_H
