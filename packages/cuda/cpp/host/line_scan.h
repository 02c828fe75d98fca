// How scans along a dimension are launched (block/line_scan.h).
#pragma once
#include "block/line_scan.h"
#include "host/launch.h"

namespace plait::cuda {

enum class ScanOrder { kAny, kSerial };  // serial: one step after the other, by one thread

// Scans along dimension `dim` of dense tensors of the shape of `t`, by the instance of a kernel for
// a kind; `args` has the operands.
plait_status launch_scan(const plait_call *c, const DeviceKernel &kernel, Kind k, const DLTensor *t,
                         int64_t dim, ScanArgs args, ScanOrder order = ScanOrder::kAny);

}  // namespace plait::cuda
