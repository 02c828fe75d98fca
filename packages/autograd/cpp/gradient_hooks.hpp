// The hooks of nodes that a backward pass runs, each kind at its time.
#pragma once
#include "evaluate.hpp"
#include "extra.hpp"

namespace plait::autograd {

// Gradients of outputs are complete: hooks of tensors may replace theirs.
void run_arrived_hooks(plait_thread *, Node *, Gradients &);
// Tensors that are no leaves and asked for their gradients get them.
void keep_retained(Node *, Gradients &);
// Just before the node runs. Returns whether a gradient is left.
bool run_before_hooks(plait_thread *, Node *, Gradients &);
// The node has made gradients of what it was given.
void run_after_hooks(plait_thread *, Node *, plait_tensor *const *given, Gradients &made);
// The leaf's gradient has grown.
void run_accumulated_hooks(plait_thread *, Node *);

}  // namespace plait::autograd
