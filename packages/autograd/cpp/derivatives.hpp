// Gradients that a recorded pass hands out, as functions that can be differentiated.
#pragma once
#include <utility>
#include <vector>

#include "evaluate.hpp"

namespace plait::autograd {

// Gradients without a history get one whose derivative is zero, if it is `known` that they depend
// on nothing; the nodes of the others are marked as derivatives.
void record_as_derivatives(plait_thread *, Gradients &, bool known);
// The gradient, without a history that says that it is constant. The caller has the only handle.
Tensor without_constant(Tensor);
// A gradient of zeros of this layout; recorded as a derivative if `record`.
Tensor zero_derivative(plait_thread *, const plait_tensor *like, bool record);
// Whether derivatives are among the nodes that these tensors' histories lead to, and all of them
// are known.
bool hold_derivatives(plait_thread *, plait_tensor *const *roots, uint32_t n);

}  // namespace plait::autograd
