// The role "communicator" under the name "nccl", for tensors of CUDA's devices.
#pragma once
#include <plait/abi.h>

namespace plait::cuda {

// Groups are named "PROVIDER WHERE": a provider of the CPU, and the name of a group of its own.
const plait_collectives &nccl_table();

}  // namespace plait::cuda
