// Convolutions by cuDNN, where that library is installed: it uses the tensor cores.
#pragma once
#include <plait/abi.h>

namespace plait::cuda {

enum class Pass { Forward, ByInput, ByWeight };

// The tensors of a convolution without bias. The one that the pass computes is in row-major order,
// the others have any strides; none is empty.
struct Convolution {
  Pass pass;
  const DLTensor *image, *weight, *result;  // (n, c, h, w), (o, c / groups, kh, kw), (n, o, oh, ow)
  int32_t stride[2], padding[2], dilation[2];
};

// PLAIT_DECLINE: the library is not there, or it does not compute this convolution.
plait_status convolution_by_library(const plait_call *c, const Convolution &);

}  // namespace plait::cuda
