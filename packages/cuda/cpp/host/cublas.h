// Products by cuBLASLt, where that library is installed: it uses the tensor cores.
#pragma once
#include "host/product.h"

namespace plait::cuda {

// PLAIT_DECLINE: the library is not there, or it does not compute this product.
plait_status product_by_library(const plait_call *c, const MatrixProduct &p);

}  // namespace plait::cuda
