// Where tangents are kept: slot[2] of a root, and places within it for views.
#pragma once
#include "engine.hpp"

namespace plait::autograd {

uint64_t level_of(const plait_thread *);  // 0: no dual level is entered

// The tangent of a tensor at this thread's level, or none. Of a view: its place in its base's.
Tensor tangent_of(plait_thread *, plait_tensor *);
// Gives a root its tangent, laid out like it; none takes it away.
void set_tangent(plait_thread *, plait_tensor *, Tensor tangent);
// The target of a write has a new tangent, or none, which in a view is zeros. No tangent that
// somebody else sees is written.
void write_tangent(plait_thread *, plait_tensor *target, const Tensor &tangent);

}  // namespace plait::autograd
