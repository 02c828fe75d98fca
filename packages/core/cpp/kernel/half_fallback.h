// float16 and bfloat16 for every operator: the fallback behind the kernels.
#ifndef PLAIT_CORE_HALF_FALLBACK_H
#define PLAIT_CORE_HALF_FALLBACK_H
#include "kernel/kernel.h"

namespace plait::core {

// Registered behind each general kernel and reached when that declined. Declines itself where no
// tensor of the call is float16 or bfloat16.
plait_status widened(plait_call *c);

}  // namespace plait::core
#endif  // PLAIT_CORE_HALF_FALLBACK_H
