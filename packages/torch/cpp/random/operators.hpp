// The kernels of random operators, by the operators' names. They decline calls while another
// generator than PyTorch's is in force.
#pragma once
#include <plait/abi.h>

#include <vector>

namespace plait::pytorch {

struct RandomOperator {
  const char *name;
  plait_kernel kernel;
};

std::vector<RandomOperator> &random_operators();

}  // namespace plait::pytorch
