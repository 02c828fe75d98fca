// Reductions of the elements that the ranks of a communicator gave.
#pragma once
#include <cstddef>
#include <vector>

namespace plait::cuda::nccl::emulation {

// Reduces `n` elements of each rank, in the order of the ranks.
void reduce(const std::vector<char *> &from, char *out, size_t n, int type, int reduction);

}  // namespace plait::cuda::nccl::emulation
