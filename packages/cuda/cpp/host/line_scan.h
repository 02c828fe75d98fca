// How scans along a dimension are launched (block/line_scan.h).
#pragma once
#include "block/line_scan.h"
#include "host/launch.h"

namespace plait::cuda {

// Scans along dimension `dim` of dense tensors of the shape of `t`; `args` has the operands.
plait_status launch_scan(const plait_call *c, const DeviceKernel &kernel, const DLTensor *t,
                         int64_t dim, ScanArgs args);

}  // namespace plait::cuda
