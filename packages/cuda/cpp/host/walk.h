// Walks of kernels over several tensors of one shape with any strides.
#pragma once
#include <cstdint>

#include "pointwise/math.h"

namespace plait::cuda {

constexpr int kWalkDims = 12;  // after dimensions are merged; more are an error of the host

// Addresses of operands from the number of an element. Strides are in bytes, or in elements if
// `make_walk` got their sizes; dimension 0 is the innermost one. Division by a size that is fixed
// during the launch is a multiplication (Granlund and Montgomery 1994, "Division by invariant
// integers using multiplication").
struct Divider {
  uint32_t divisor, multiplier, shift;
};
inline Divider divider(int64_t divisor) {
  uint32_t shift = 0;
  while (shift < 32 && (uint64_t(1) << shift) < uint64_t(divisor)) shift++;
  const uint64_t one = 1;
  const uint64_t multiplier =
      ((one << 32) * ((one << shift) - uint64_t(divisor))) / uint64_t(divisor) + 1;
  return {uint32_t(divisor), uint32_t(multiplier), shift};
}
PLAIT_HD uint32_t quotient(const Divider &d, uint32_t n) {
  const uint32_t high = uint32_t((uint64_t(n) * d.multiplier) >> 32);
  return uint32_t((uint64_t(high) + n) >> d.shift);
}

template <int operands>
struct Walk {
  int32_t dims;
  int32_t is_large;  // more than 2^31 elements: sizes are divided as they are
  int64_t size[kWalkDims];
  Divider by[kWalkDims];
  int64_t stride[kWalkDims][operands];

  // Offsets of element `linear` in each operand.
  PLAIT_HD void seek(int64_t linear, int64_t *offset) const {
    if (!is_large) return seek_small(linear, offset);
    for (int k = 0; k < operands; k++) offset[k] = 0;
#pragma unroll 1
    for (int d = 0; d < dims; d++) {
      const int64_t rest = linear / size[d], at = linear - rest * size[d];
      for (int k = 0; k < operands; k++) offset[k] += at * stride[d][k];
      linear = rest;
    }
  }
  // `seek` where the walk is not large, or has one dimension: a kernel without divisions of 64-bit
  // numbers needs fewer registers.
  PLAIT_HD void seek_small(int64_t linear, int64_t *offset) const {
    for (int k = 0; k < operands; k++) offset[k] = 0;
    const int last = dims - 1;
#pragma unroll 1
    for (int d = 0; d < last; d++) {
      const uint32_t n = uint32_t(linear), rest = quotient(by[d], n), at = n - rest * by[d].divisor;
      for (int k = 0; k < operands; k++) offset[k] += int64_t(at) * stride[d][k];
      linear = rest;
    }
    for (int k = 0; k < operands; k++) offset[k] += linear * stride[last][k];
  }
};

// From a finished plan ("kernel/plan.h"). False if it has too many dimensions. With `item`, the
// bytes of an element of each operand, strides are in elements.
template <int operands, class Plan>
bool make_walk(const Plan &plan, Walk<operands> *out, const int *item = nullptr) {
  if (plan.ndim > kWalkDims) return false;
  out->dims = plan.ndim;
  out->is_large = plan.numel >= (int64_t(1) << 31);
  for (int d = 0; d < plan.ndim; d++) {
    const int from = plan.ndim - 1 - d;
    out->size[d] = plan.size[from];
    out->by[d] = divider(plan.size[from]);
    for (int k = 0; k < operands; k++)
      out->stride[d][k] = plan.stride[k][from] / (item ? item[k] : 1);
  }
  return true;
}

// Whether all operands are dense in one order: element i of each lies at i times its size. Operands
// of one repeated element (stride 0) count as dense if `scalars` has their bit.
template <class Plan>
bool is_dense(const Plan &plan, const int *item) {
  if (plan.ndim != 1) return false;
  for (int k = 0; k < plan.operands; k++)
    if (plan.numel != 1 && plan.stride[k][0] != item[k]) return false;
  return true;
}

}  // namespace plait::cuda
