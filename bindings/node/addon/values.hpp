// Values of JavaScript as arguments of operators.
#pragma once
#include <deque>

#include "call.hpp"

namespace plait::node {

// What values point to during a call. Tensors are held, as an array may have a getter that frees
// one of them.
struct Memory {
  std::deque<Tensor> held;
  std::deque<Ref<plait_generator>> generators;
  std::deque<std::string> texts;
  std::deque<std::vector<int64_t>> ints;
  std::deque<std::vector<double>> floats;
  std::deque<std::vector<plait_tensor *>> tensors;
};

int64_t whole(const Call &c, napi_value value, const std::string &what);
DType dtype_of(const Call &c, napi_value value, const std::string &what);
plait_value value_of(const Call &c, const plait_op *op, const plait_arg &argument, napi_value value,
                     Memory *memory);

}  // namespace plait::node
