// Copies between any two layouts and dtypes.
#ifndef PLAIT_CORE_COPY_H
#define PLAIT_CORE_COPY_H
#include "kernels/kernel.h"

namespace plait::core {

// from broadcasts to to's shape; dtypes may differ; the memory doesn't overlap.
plait_status copy(const plait_call *c, const DLTensor *to, const DLTensor *from);

// The same dtype (elements of `item` bytes) with given strides in elements.
void copy_strided(const plait_call *c, char *to, const int64_t *to_strides, const char *from,
                  const int64_t *from_strides, const int64_t *shape, int ndim, int item);

plait_status fill(const plait_call *c, const DLTensor *to, const plait_value &value);

}  // namespace plait::core
#endif  // PLAIT_CORE_COPY_H
