// The hooks of nodes that a backward pass runs.
#pragma once
#include "evaluate.hpp"
#include "extra.hpp"

namespace plait::autograd {

// Runs the hooks of tensors when the gradients of outputs are complete; they may replace them.
void run_arrived_hooks(plait_thread *, Node *, Gradients &);
// Stores the gradients of non-leaf tensors with retain_grad.
void keep_retained(Node *, Gradients &);
// Runs the hooks before the node. Returns whether a gradient is left.
bool run_before_hooks(plait_thread *, Node *, Gradients &);
// Runs the hooks after the node, with the gradients that it was given and that it made.
void run_after_hooks(plait_thread *, Node *, plait_tensor *const *given, Gradients &made);
// Runs the hooks after a leaf's gradient was added to.
void run_accumulated_hooks(plait_thread *, Node *);

}  // namespace plait::autograd
