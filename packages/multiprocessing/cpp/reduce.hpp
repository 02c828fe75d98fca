// Reductions over ranks, in the order of the ranks.
#pragma once
#include <plait/plait.hpp>

#include "shared.h"

namespace plait::multiprocessing {

// out[i] = in[0][i] op in[1][i] op ...; false if the dtype does not have the operation.
bool reduce(DLDataType, uint32_t reduction, const char *const *in, uint32_t ranks, char *out,
            uint64_t elements);

}  // namespace plait::multiprocessing
