// Copies between any two layouts of one dtype, row after row.
#pragma once
#include "kernel/plan.h"

namespace plait::core {

// Operand 1 of a finished plan to operand 0; elements of `item` bytes.
void copy_rows(const plait_call *c, const Plan &plan, int item);

}  // namespace plait::core
