#include "emulation/nccl/reduce.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include <plait/half.h>

#include "host/nccl_types.h"

namespace plait::cuda::nccl::emulation {
namespace {

template <class T>
T combine(T a, T b, int reduction) {
  switch (reduction) {
    case kProduct: return T(a * b);
    case kMax: return std::max(a, b);
    case kMin: return std::min(a, b);
    default: return T(a + b);
  }
}

template <class T>
void reduce_as(const std::vector<char *> &from, char *out, size_t n, int reduction) {
  for (size_t i = 0; i < n; i++) {
    T x, y;
    memcpy(&x, from[0] + i * sizeof x, sizeof x);
    for (size_t r = 1; r < from.size(); r++) {
      memcpy(&y, from[r] + i * sizeof y, sizeof y);
      x = combine(x, y, reduction);
    }
    if (reduction == kAverage) x = T(x / T(from.size()));
    memcpy(out + i * sizeof x, &x, sizeof x);
  }
}

template <class To, class Of>
void reduce_halves(const std::vector<char *> &from, char *out, size_t n, int reduction, To &&wide,
                   Of &&narrow) {
  for (size_t i = 0; i < n; i++) {
    uint16_t half;
    memcpy(&half, from[0] + i * 2, 2);
    float x = wide(half);
    for (size_t r = 1; r < from.size(); r++) {
      memcpy(&half, from[r] + i * 2, 2);
      x = combine(x, wide(half), reduction);
    }
    if (reduction == kAverage) x /= float(from.size());
    half = narrow(x);
    memcpy(out + i * 2, &half, 2);
  }
}

}  // namespace

void reduce(const std::vector<char *> &from, char *out, size_t n, int type, int reduction) {
  switch (type) {
    case kInt8: return reduce_as<int8_t>(from, out, n, reduction);
    case kUint8: return reduce_as<uint8_t>(from, out, n, reduction);
    case kInt32: return reduce_as<int32_t>(from, out, n, reduction);
    case kUint32: return reduce_as<uint32_t>(from, out, n, reduction);
    case kInt64: return reduce_as<int64_t>(from, out, n, reduction);
    case kUint64: return reduce_as<uint64_t>(from, out, n, reduction);
    case kHalf:
      return reduce_halves(from, out, n, reduction, plait_float16_to_float, plait_float16_of_float);
    case kBFloat:
      return reduce_halves(from, out, n, reduction, plait_bfloat16_to_float,
                           plait_bfloat16_of_float);
    case kFloat: return reduce_as<float>(from, out, n, reduction);
    default: return reduce_as<double>(from, out, n, reduction);
  }
}

}  // namespace plait::cuda::nccl::emulation
