// Derivatives that run before their turn, several at once.
#pragma once
#include "node.hpp"

namespace plait::autograd {

// How many threads a pass may use for derivatives. One if it is `particular`: recorded itself,
// asked for the gradients of some inputs only, watched, or run within a level of forward mode.
uint32_t threads_for(const plait_thread *, bool particular);

}  // namespace plait::autograd
