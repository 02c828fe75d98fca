// Which functions of NCCL a collective of the role "communicator" is.
#pragma once
#include <plait/collectives/call.hpp>

#include "host/nccl_group.h"

namespace plait::cuda::nccl {

// PLAIT_OK, or the error for a reduction that NCCL does not have.
plait_status check_reduction(plait_thread *, const collectives::Collective &);

// Puts the collective into the channel's stream, which begins with the tensors' contents.
Result put(const collectives::Collective &, uint32_t rank, uint32_t size, const Channel &);

}  // namespace plait::cuda::nccl
