// Which operators are refused in the reproducible mode.
#ifndef PLAIT_CORE_REPRODUCIBLE_H
#define PLAIT_CORE_REPRODUCIBLE_H
#include "kernel/kernel.h"

namespace plait::core {

// Registers, in front of the kernels, what refuses calls in the mode.
plait_status register_refusals(const plait_runtime *runtime, const plait_plugin *self);

}  // namespace plait::core
#endif  // PLAIT_CORE_REPRODUCIBLE_H
