// Operands in row-major order, for kernels that read no other.
#pragma once
#include "host/launch.h"

namespace plait::cuda {

// `out` becomes the data of `x` in row-major order: those of `x` itself if they lie so, else a copy
// in `space`.
plait_status make_dense(const plait_call *c, const DLTensor *x, DeviceWorkspace *space,
                        const void **out);

// Copies `x` to `to` in row-major order.
plait_status copy_dense(const plait_call *c, const DLTensor *x, void *to);

}  // namespace plait::cuda
