// The hooks of nodes that a backward pass runs.
#pragma once
#include "evaluate.hpp"
#include "extra.hpp"

namespace plait::autograd {

// Runs the hooks of tensors when the gradients of outputs are complete; they may replace them.
void run_arrived_hooks(plait_thread *, Node *, Gradients &);
// Adds to the gradients of non-leaf tensors with retain_grad.
void keep_retained(plait_thread *, Node *, Gradients &);
// Runs the hooks before the node. Returns whether a gradient is left.
bool run_before_hooks(plait_thread *, Node *, Gradients &);
// Runs the hooks after the node, with the gradients that it was given and that it made.
void run_after_hooks(plait_thread *, Node *, plait_tensor *const *arguments, Gradients &result);
// Runs the hooks after a leaf's gradient was added to.
void run_accumulated_hooks(plait_thread *, Node *);
// Calls a callable of the host language with gradients (NULL: None); it returns `n_out` gradients
// at most.
void call_host(plait_thread *, plait_object *callable, plait_tensor *const *in, uint32_t n_in,
               plait_tensor **out, uint32_t n_out);

}  // namespace plait::autograd
