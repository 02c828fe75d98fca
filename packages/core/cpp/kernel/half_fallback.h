// float16 and bfloat16 for every operator: the fallback behind the kernels.
#pragma once
#include "kernel/kernel.h"

namespace plait::core {

// Registered behind each general kernel, so it runs when that one declined. It declines calls
// without float16 or bfloat16 tensors. A large call is computed slice by slice where the operator's
// definition says how (kernel/slices.h).
plait_status half_fallback(plait_call *c);

}  // namespace plait::core
