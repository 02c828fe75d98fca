// Copies in which source and target are contiguous along different dimensions.
#pragma once
#include "kernel/kernel.h"

namespace plait::core {

// to[r + c * to_step] = from[r * from_step + c] for r < rows, c < columns (steps in elements),
// `item` bytes each
void transpose_block(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t rows,
                     int64_t columns, int item);

}  // namespace plait::core
