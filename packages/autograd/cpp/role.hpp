#pragma once
#include "engine.hpp"

namespace plait::autograd {

const plait_engine &role();  // the table, once the layer's bit is known

plait_status backward(void *, plait_thread *, plait_tensor *const *roots,
                      plait_tensor *const *grads, uint32_t n_roots, plait_tensor *const *inputs,
                      uint32_t n_inputs, uint64_t flags, plait_tensor **gx);

}  // namespace plait::autograd
