// The host's side of the losses over classes (block/class_targets.h).
#pragma once
#include "block/class_targets.h"
#include "host/copy.h"
#include "host/reduce.h"

namespace plait::cuda {

inline int loss_reduction_of(const plait_call *c, int i) {
  return text_is(c, i, "mean")  ? loss_reduction::MEAN
         : text_is(c, i, "sum") ? loss_reduction::SUM
                                : loss_reduction::NONE;
}

// The targets and weights of scores of a shape: (classes), (n, classes) or (n, classes, ...).
class ClassOperands {
 public:
  plait_status take(const plait_call *c, int target_at, int weight_at, int64_t ignore,
                    const int64_t *shape, int64_t ndim) {
    const DLTensor *w = core::tensor(c, weight_at);
    PLAIT_TRY(target_.take_as(c, core::tensor(c, target_at), DLDataType{kDLInt, 64, 1}));
    args.target = target_.data<int64_t>();
    args.ignore = ignore;
    args.weight = w ? w->data : nullptr;
    args.weight_step = w ? w->strides[0] : 0;
    args.classes = shape[ndim > 1];
    args.step = 1;
    for (int64_t d = 2; d < ndim; d++) args.step *= shape[d];
    args.rows = ndim > 1 ? shape[0] * args.step : 1;
    args.fault = fault_of(c, target_at);
    return PLAIT_OK;
  }
  // Reduces the losses of rows by a kernel of RowLosses.
  plait_status reduce(const plait_call *c, const DeviceKernel &kernel, Kind k,
                      RowLossArgs a) const {
    int64_t shape[1] = {args.rows}, strides[1] = {1};
    DLTensor rows = *target_.tensor();
    rows.ndim = 1, rows.shape = shape, rows.strides = strides;
    a.classes = args;
    return launch_reduction(c, kernel, &rows, 1, a, false, k);
  }
  ClassArgs args{};

 private:
  Operand target_;
};

// The factors of gradients of rows; `sums` is a kernel of RowLosses.
class UpstreamOperands {
 public:
  plait_status take(const plait_call *c, const DLTensor *grad, int reduction,
                    const ClassOperands &classes, const DeviceKernel &sums, Kind k) {
    PLAIT_TRY(grad_.take_dense(c, grad));
    args.grad = grad_.tensor()->data;
    args.is_each = reduction == loss_reduction::NONE;
    if (reduction != loss_reduction::MEAN) return PLAIT_OK;
    PLAIT_TRY(total_.take(c, sizeof(double)));
    args.total = total_.data<double>();
    RowLossArgs a{};
    a.total = total_.data<double>();
    return classes.reduce(c, sums, k, a);
  }
  UpstreamArgs args{};

 private:
  Operand grad_;
  DeviceWorkspace total_;
};

}  // namespace plait::cuda
