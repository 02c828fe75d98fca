// New tensors of one value: full, zeros and ones.
#include "kernel/copy.h"

namespace plait::core {
namespace {

plait_status full(plait_call *c) { return fill_with(c, result(c), c->in[1]); }
plait_status zeros(plait_call *c) { return fill_with(c, result(c), 0); }
plait_status ones(plait_call *c) { return fill_with(c, result(c), 1); }

PLAIT_KERNEL("full", full);
PLAIT_KERNEL("full_like", full);
PLAIT_KERNEL("zeros", zeros);
PLAIT_KERNEL("zeros_like", zeros);
PLAIT_KERNEL("ones", ones);
PLAIT_KERNEL("ones_like", ones);

}  // namespace
}  // namespace plait::core
