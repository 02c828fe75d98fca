// The Jacobian-vector product of a call, from the operator's definition.
#pragma once
#include <vector>

#include "record.hpp"

namespace plait::autograd {

struct Tangent {
  uint32_t position;
  Tensor value;
};
using Tangents = std::vector<Tangent>;

// The tangents of a call's results from those of its inputs; none for a result that does not depend
// on them. Call it with the layer "forward" off.
std::vector<Tensor> jvp(const plait_call *, const Tangents &);
[[noreturn]] void refuse_tangents(const plait_call *, const char *reason);

}  // namespace plait::autograd
