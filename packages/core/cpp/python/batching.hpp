// Tensors of all samples of a batch that look like the tensor of one sample: vmap's.
#pragma once
#include <plait/gil.hpp>

#include "tensor.hpp"

namespace plait::core {

// True unless the tensor is batched: its elements are those of no sample. False with an exception.
bool refuse_batched(const plait_tensor *, const char *who);
bool add_batching(PyObject *module);

}  // namespace plait::core
