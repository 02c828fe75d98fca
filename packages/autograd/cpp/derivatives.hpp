// Gradients that a recorded pass hands out, as functions that can be differentiated.
#pragma once
#include <utility>
#include <vector>

#include "evaluate.hpp"

namespace plait::autograd {

// Gradients without a history get one whose derivative is zero; the nodes of the others are marked
// as derivatives.
void record_as_derivatives(plait_thread *, Gradients &);
// A gradient of zeros of this layout; recorded as a derivative if `record`.
Tensor zero_derivative(plait_thread *, const plait_tensor *like, bool record);
// Whether a derivative is among the nodes that these tensors' histories lead to.
bool hold_derivatives(plait_thread *, plait_tensor *const *roots, uint32_t n);

}  // namespace plait::autograd
