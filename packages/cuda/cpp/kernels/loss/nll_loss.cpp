// The negative log-likelihood loss and its derivative.
#include "block/class_targets.h"
#if PLAIT_HOST
#include "host/class_targets.h"
#endif

namespace plait::cuda {

struct NllArgs {
  ClassArgs classes;
  UpstreamArgs upstream;
  const void *scores;
  void *out;
};

#if PLAIT_KERNELS
template <class T>
PLAIT_DEVICE void nll_sums(Block &t, const RowLossArgs &a) {
  reduce<RowLosses<T>>(t, a, a.reduce);
}
template <class E>
PLAIT_DEVICE void nll_rows(Thread &t, const NllArgs &a) {
  using T = Compute<E>;
  const Targets<E> targets(t, a.classes);
  const auto scores = t.global<const E>(a.scores);
  const auto out = t.global<E>(a.out);
  for (int64_t i = t.index(); i < a.classes.rows; i += t.stride()) {
    const int64_t target = targets.of(i);
    T loss = T(0);
    if (target >= 0)
      loss =
          -widen(scores.load(targets.first(i) + target * a.classes.step)) * targets.factor(target);
    out.store(i, narrow<E>(loss));
  }
}
// The gradients of the targets' scores; the others are 0 already.
template <class E>
PLAIT_DEVICE void nll_gradients(Thread &t, const NllArgs &a) {
  const Targets<E> targets(t, a.classes);
  const auto out = t.global<E>(a.out);
  for (int64_t i = t.index(); i < a.classes.rows; i += t.stride()) {
    const int64_t target = targets.of(i);
    if (target < 0) continue;
    const auto g = -upstream<E>(t, a.upstream, i) * targets.factor(target);
    out.store(targets.first(i) + target * a.classes.step, narrow<E>(g));
  }
}
#endif
PLAIT_DEVICE_KERNEL(nll_sums, RowLossArgs, 256, FLOATING);
PLAIT_DEVICE_KERNEL(nll_rows, NllArgs, 256, FLOATING);
PLAIT_DEVICE_KERNEL(nll_gradients, NllArgs, 256, FLOATING);

#if PLAIT_HOST
namespace {

// nll_loss(input, target, weight, reduction, ignore_index)
plait_status nll_loss(plait_call *c) {
  const DLTensor *in = tensor(c, 0);
  const Kind k = kind(in->dtype);
  const int reduction = loss_reduction_of(c, 3);
  Operand scores;
  ClassOperands classes;
  PLAIT_TRY(scores.take_dense(c, in));
  PLAIT_TRY(classes.take(c, 1, 2, integer(c, 4, -100), in->shape, in->ndim));
  if (reduction == loss_reduction::NONE) {
    const NllArgs a{classes.args, {}, scores.data(), result(c)->data};
    return launch(c, nll_rows_kernel, k, a, blocks_for(c, classes.args.rows, 256), 256);
  }
  RowLossArgs a{};
  a.reduce.out = result(c)->data, a.reduce.mode = reduction, a.scores = scores.data();
  return classes.reduce(c, nll_sums_kernel, k, a);
}

// nll_loss_backward(grad, target, weight, size, reduction, ignore_index)
plait_status nll_loss_backward(plait_call *c) {
  const DLTensor *out = result(c);
  const Kind k = kind(out->dtype);
  ClassOperands classes;
  UpstreamOperands up;
  PLAIT_TRY(classes.take(c, 1, 2, integer(c, 5, -100), out->shape, out->ndim));
  PLAIT_TRY(up.take(c, tensor(c, 0), loss_reduction_of(c, 4), classes, nll_sums_kernel, k));
  PLAIT_TRY(fill_bytes(c, out->data, 0, numel(out) * size_of(k)));
  const NllArgs a{classes.args, up.args, nullptr, out->data};
  return launch(c, nll_gradients_kernel, k, a, blocks_for(c, classes.args.rows, 256), 256);
}

PLAIT_KERNEL("nll_loss", nll_loss);
PLAIT_KERNEL("nll_loss_backward", nll_loss_backward);

}  // namespace
#endif
}  // namespace plait::cuda
