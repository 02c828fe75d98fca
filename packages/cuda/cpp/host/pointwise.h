// The host's side of a pointwise operator: checks nothing, as shape functions did, and launches.
#pragma once
#include "block/block.h"
#include "host/walk.h"
#include "pointwise/pointwise.h"

namespace plait::cuda {

struct PointwiseFacts {
  const DeviceKernel *kernel;
  bool is_special;
  int n_params, to;
  int bounded;  // number of the operand whose values have bounds, or -1
  double low, high;
};

template <int operands>
plait_status run_pointwise(plait_call *c, const PointwiseFacts &f);

// The number of vectors of `width` elements that a kernel can read at once: 0 if an operand has
// gaps or its address does not fit. Sets the bits of operands with one element for a whole vector.
// The result is operand 0 of the plan; bits count from the one behind it.
int64_t vectors_of(const Plan &plan, const int *item, int width, uint32_t is_number,
                   uint32_t *is_repeated);

extern template plait_status run_pointwise<1>(plait_call *, const PointwiseFacts &);
extern template plait_status run_pointwise<2>(plait_call *, const PointwiseFacts &);
extern template plait_status run_pointwise<3>(plait_call *, const PointwiseFacts &);
extern template plait_status run_pointwise<4>(plait_call *, const PointwiseFacts &);

}  // namespace plait::cuda

#define PLAIT_POINTWISE_KERNEL_AS(function, n_operands, n_params, to, dtypes, bounded, low, high) \
  namespace plait::cuda {                                                                         \
  namespace {                                                                                     \
  using Args_##function = PointwiseArgs<n_operands>;                                              \
  PLAIT_DEVICE_KERNEL(pointwise_##function, Args_##function, 256, dtypes);                        \
  plait_status call_##function(plait_call *c) {                                                   \
    return run_pointwise<n_operands>(c, {&pointwise_##function##_kernel, is_special(#function),   \
                                         n_params, result_as::to, bounded, low, high});           \
  }                                                                                               \
  }                                                                                               \
  }
#define PLAIT_POINTWISE_AS(function, op, n_operands, n_params, to, dtypes, bounded, argument, low, \
                           high)                                                                   \
  PLAIT_POINTWISE_KERNEL_AS(function, n_operands, n_params, to, dtypes, bounded, low, high)        \
  namespace plait::cuda {                                                                          \
  namespace {                                                                                      \
  PLAIT_KERNEL(op, call_##function);                                                               \
  }                                                                                                \
  }
