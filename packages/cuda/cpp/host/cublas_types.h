// Types and numbers of cuBLASLt, as its documentation gives them.
#pragma once
#include <cstddef>
#include <cstdint>

#include "driver/types.h"

namespace plait::cuda::cublas {

using Handle = void *;
using Description = void *;
using Layout = void *;
using Preference = void *;
using Status = int;
struct Algorithm {
  uint64_t data[8];
};
struct Choice {
  Algorithm algorithm;
  size_t workspace;
  Status state;
  float waves;
  int reserved[4];
};

enum : int { kSuccess = 0, kNotSupported = 15 };
enum : int {
  kFloat = 0,
  kDouble = 1,
  kHalf = 2,
  kComplexFloat = 4,
  kComplexDouble = 5,
  kBFloat = 14
};
enum : int { kComputeFloat = 68, kComputeDouble = 70, kComputeTf32 = 77 };
enum : int { kPlain = 0, kTransposed = 1 };
// Attributes of a description, epilogues, attributes of layouts and preferences.
enum : int { kTransposeA = 3, kTransposeB = 4, kEpilogue = 7, kBiasPointer = 8 };
enum : int { kNoEpilogue = 1, kAddBias = 4 };
enum : int { kBatchCount = 5, kBatchStride = 6 };
enum : int { kMostWorkspace = 1, kReductions = 3, kAlignmentA = 5 };  // B, C and D follow A
enum : uint32_t { kReductionInWorkspace = 2 | 4 };  // without atomic sums

}  // namespace plait::cuda::cublas
