// The role "allocator" of CUDA.
#pragma once
#include <plait/abi.h>

namespace plait::cuda {

const plait_allocator *allocator_table();

}  // namespace plait::cuda
