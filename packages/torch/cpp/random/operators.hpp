// The kernels of random operators, by the operators' names. They decline calls while another
// generator than PyTorch's is in force.
#pragma once
#include <plait/abi.h>

#include <utility>
#include <vector>

namespace plait::pytorch {

const std::vector<std::pair<const char *, plait_kernel>> &random_operators();

}  // namespace plait::pytorch
