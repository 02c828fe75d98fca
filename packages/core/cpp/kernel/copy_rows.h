// Copies between any two layouts of one dtype, row after row.
#pragma once
#include "kernel/plan.h"

namespace plait::core {

// Operand 1 of a finished plan to operand 0; elements of `item` bytes.
void copy_rows(const plait_call *c, const Plan &plan, int item);

// `count` rows of `bytes` bytes each; `to_row` and `from_row` are the bytes from a row to the next.
void move_rows(char *to, int64_t to_row, const char *from, int64_t from_row, int64_t count,
               int64_t bytes);

}  // namespace plait::core
