// Functions in tvm-ffi's ABI: plait calls them with its tensors, without a copy.
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/function.h>

#include <cmath>

using tvm::ffi::TensorView;

namespace {

// Other dtypes, and memory that is not in C order, are left to the kernel before this one.
bool is_plain(const TensorView &x) {
  return x.dtype().code == kDLFloat && x.dtype().bits == 32 && x.IsContiguous();
}
const float *read(const TensorView &x) { return static_cast<const float *>(x.data_ptr()); }
float *write(const TensorView &x) { return static_cast<float *>(x.data_ptr()); }

void sigmoid(TensorView x, TensorView result) {
  if (!is_plain(x) || !is_plain(result))
    TVM_FFI_THROW(NotImplementedError) << "contiguous tensors of float32 are required";
  for (int64_t i = 0; i < x.numel(); i++) write(result)[i] = 1 / (1 + std::exp(-read(x)[i]));
}

void cube(TensorView x, TensorView result) {
  if (!is_plain(x)) TVM_FFI_THROW(ValueError) << "a contiguous tensor of float32 is required";
  for (int64_t i = 0; i < x.numel(); i++) write(result)[i] = read(x)[i] * read(x)[i] * read(x)[i];
}

}  // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(sigmoid, sigmoid);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(cube, cube);
