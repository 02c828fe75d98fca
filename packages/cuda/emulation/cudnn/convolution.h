// A convolution of the stand-in for cuDNN, read from descriptors and computed by loops of the host.
#pragma once
#include "emulation/cudnn/descriptors.h"

namespace plait::cuda::emulation {

constexpr int kDims = 4;
using Sizes = int64_t[kDims];

struct ConvolutionTensor {
  int type;
  int64_t id, alignment;
  Sizes sizes, strides;
  int64_t bytes() const;  // from the first element to the last one
};

struct ConvolutionProblem {
  int operation;  // kForward, kBackwardData or kBackwardFilter
  int64_t stride[2], padding[2], dilation[2];
  ConvolutionTensor weight, image, result;

  // False: the operation is no convolution of images, or its sizes do not fit one another.
  bool read(const CudnnDescriptor &from);
  // The data are memory of the host. `rounds`: operands of float32 are rounded to TF32.
  void compute(char *weight_data, char *image_data, char *result_data, bool rounds) const;

 private:
  bool read_geometry(const CudnnDescriptor &from);
  bool fits() const;
};

}  // namespace plait::cuda::emulation
