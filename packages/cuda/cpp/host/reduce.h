// The host's side of reductions: which positions of the input make one result, and how the work is
// cut. Cuts depend on sizes alone.
#pragma once
#include "block/reduce.h"
#include "host/launch.h"

namespace plait::cuda {

struct Axes {  // merged dimensions; strides in elements
  int ndim = 0;
  int64_t count = 1;
  int64_t size[PLAIT_MAX_DIMS], stride[PLAIT_MAX_DIMS];
  void push(int64_t n, int64_t s);  // an inner dimension
};

struct Reduction {
  Axes kept, reduced;  // kept in the order of the results
};

// Bits of all dimensions, and of those that argument i (int, int[] or None: all) names.
inline uint64_t all_dims(int ndim) { return ndim >= 64 ? ~uint64_t(0) : (uint64_t(1) << ndim) - 1; }
uint64_t dims_mask(const plait_call *c, int i, int ndim);

// Describes the reduction of the dimensions of a mask. The reduced positions are in C order if
// `in_order`, else in the order of their strides.
void describe(const DLTensor *t, uint64_t mask, bool in_order, Reduction *r);

// Makes a walk over dimensions; false if they are too many.
bool make_walk(const Axes &axes, Walk<1> *out);

// Chooses how the reduction of `t` is cut; `args` has the results and the operands.
plait_status plan_reduction(const plait_call *c, const DLTensor *t, uint64_t mask, bool in_order,
                            ReduceArgs *args);
// What joins the values of pieces afterwards.
ReduceArgs join_of_pieces(ReduceArgs args);
Grid reduction_grid(const ReduceArgs &args);

inline ReduceArgs &reduce_args(ReduceArgs &a) { return a; }
template <class Args>
ReduceArgs &reduce_args(Args &a) {
  return a.reduce;
}

// Reduces `t` by a kernel whose body is `reduce` (block/reduce.h). `args`: ReduceArgs, or a struct
// whose member `reduce` is that. The reduced positions are in C order if `in_order`. The instance
// of the kernel is that for the dtype of `t` unless another one is given.
template <class Args>
plait_status launch_reduction(const plait_call *c, const DeviceKernel &kernel, const DLTensor *t,
                              uint64_t mask, Args args, bool in_order = false,
                              Kind instance = Unknown) {
  constexpr int64_t kShared = kReduceThreads * kValueBytes;
  const Kind k = instance == Unknown ? kind(t->dtype) : instance;
  ReduceArgs &a = reduce_args(args);
  PLAIT_TRY(plan_reduction(c, t, mask, in_order, &a));
  if (!a.results) return PLAIT_OK;
  DeviceWorkspace space;
  if (a.pieces > 1) {
    PLAIT_TRY(space.take(c, a.results * a.pieces * kValueBytes));
    a.partial = space.data();
    PLAIT_TRY(launch(c, kernel, k, args, reduction_grid(a), kReduceThreads, kShared));
    a = join_of_pieces(a);
  }
  return launch(c, kernel, k, args, reduction_grid(a), kReduceThreads, kShared);
}

}  // namespace plait::cuda
