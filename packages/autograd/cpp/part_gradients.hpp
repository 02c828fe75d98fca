// The gradient of a part of a tensor, `x[i]` or `x[a:b]`, goes where it belongs in the gradient of
// x. By the derivative alone each part would first be spread over zeros of the size of x.
#pragma once
#include "evaluate.hpp"

namespace plait::autograd {

// Adds the gradient of the node's result to *slot, the gradient of `whole` as far as it is known,
// or NULL. Returns false, and does nothing, where the node is no part or its derivative must run.
bool add_part(const Evaluation &, Node *, Gradients &, const Layout &whole, plait_tensor **slot);

}  // namespace plait::autograd
