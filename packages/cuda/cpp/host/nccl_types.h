// Types and numbers of NCCL, as its documentation gives them.
#pragma once
#include <cstddef>
#include <cstdint>

#include "driver/types.h"

namespace plait::cuda::nccl {

using Comm = void *;  // one rank of a communicator
using Result = int;
struct UniqueId {
  char bytes[128];
};

enum : int {
  kSuccess = 0,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,
  kInProgress = 7
};
enum Type : int {
  kInt8 = 0,
  kUint8 = 1,
  kInt32 = 2,
  kUint32 = 3,
  kInt64 = 4,
  kUint64 = 5,
  kHalf = 6,
  kFloat = 7,
  kDouble = 8,
  kBFloat = 9
};
enum Reduction : int { kSum = 0, kProduct = 1, kMax = 2, kMin = 3, kAverage = 4 };

constexpr int size_of(int type) {
  return type <= kUint8                                        ? 1
         : type == kHalf || type == kBFloat                    ? 2
         : type == kInt32 || type == kUint32 || type == kFloat ? 4
                                                               : 8;
}

}  // namespace plait::cuda::nccl
