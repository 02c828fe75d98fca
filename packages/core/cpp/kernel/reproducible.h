// Which operators are refused in the reproducible mode.
#pragma once
#include "kernel/kernel.h"

namespace plait::core {

// Libraries whose results depend on the processor, and for libm the dtypes whose kernels call it:
// all, float64 and complex numbers (float32 has functions of its own), or complex numbers alone.
enum class Library { lapack, libm_all, libm_wide, libm_complex };
struct LibraryCall {
  const char *op;
  Library library;
};
// From the operators' definitions, generated. What is composed of these operators is refused by
// them.
extern const LibraryCall library_calls[];
extern const size_t n_library_calls;

// Registers, in front of the kernels, what refuses calls in the mode.
plait_status register_refusals(const plait_runtime *runtime, const plait_plugin *self);

}  // namespace plait::core
