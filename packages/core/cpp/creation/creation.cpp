// New tensors of one value, full, zeros and ones, and those without values, empty.
#include "kernel/copy.h"

namespace plait::core {
namespace {

plait_status full(plait_call *c) { return fill_with(c, result(c), c->in[1]); }
plait_status zeros(plait_call *c) { return fill_with(c, result(c), 0); }
plait_status ones(plait_call *c) { return fill_with(c, result(c), 1); }
plait_status empty(plait_call *) { return PLAIT_OK; }

PLAIT_KERNEL("full", full);
PLAIT_KERNEL("full_like", full);
PLAIT_KERNEL("zeros", zeros);
PLAIT_KERNEL("zeros_like", zeros);
PLAIT_KERNEL("ones", ones);
PLAIT_KERNEL("ones_like", ones);
PLAIT_KERNEL("empty", empty);
PLAIT_KERNEL("empty_like", empty);
PLAIT_KERNEL("empty_strided", empty);

}  // namespace
}  // namespace plait::core
