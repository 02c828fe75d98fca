// Sums of gradients, in place if nothing else refers to them.
#pragma once
#include "history.hpp"

namespace plait::autograd {

// Whether a gradient may be written to: nothing else refers to it.
bool writable(const plait_tensor *);
// a + b; either may be written to if `record` is off and nothing else refers to it.
Tensor sum(plait_thread *, Tensor a, Tensor b, bool record);
// Adds to the leaf's gradient; safe from several passes at once.
void add_to_leaf(plait_thread *, Leaf *, Tensor gradient, bool record);
plait_tensor *leaf_grad(Leaf *);  // a new reference, or NULL
void set_leaf_grad(Leaf *, Tensor gradient);

}  // namespace plait::autograd
