// Copies: cast, clone, copy_, and one value written everywhere by fill_ and zero_.
#include "kernel/copy.h"

namespace plait::core {
namespace {

plait_status cast(plait_call *c) { return copy(c, result(c), tensor(c, 0)); }
plait_status clone(plait_call *c) { return copy(c, result(c), tensor(c, 0)); }
plait_status copy_(plait_call *c) {
  const DLTensor *from = tensor(c, 1);
  if (from->device.device_type == PLAIT_META && numel(from))
    return PLAIT_FAIL(c, PLAIT_NOT_IMPLEMENTED,
                      "`src` is on the device meta, which has no values to copy to the CPU");
  return copy(c, tensor(c, 0), from);
}
plait_status fill_(plait_call *c) { return fill_with(c, tensor(c, 0), c->in[1]); }
plait_status zero_(plait_call *c) { return fill_with(c, tensor(c, 0), 0); }

PLAIT_KERNEL("cast", cast);
PLAIT_KERNEL("clone", clone);
PLAIT_KERNEL("dense", clone);
PLAIT_KERNEL("copy_", copy_);
PLAIT_KERNEL("fill_", fill_);
PLAIT_KERNEL("zero_", zero_);

}  // namespace
}  // namespace plait::core
