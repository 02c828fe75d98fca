// Cross-entropy of scores and classes in one pass over the scores, and its derivative: softmax and
// what follows it.
#include "block/class_targets.h"
#include "block/softmax_rows.h"
#if PLAIT_HOST
#include "host/class_targets.h"
#include "host/softmax.h"
#endif

namespace plait::cuda {

struct CrossEntropyArgs {
  ReduceArgs reduce;  // `out` has the logarithms of sums
  ClassArgs classes;
  const void *scores;
  void *losses;  // of rows without their factors, in the type of the computation; or NULL
  void *out;  // of rows with their factors
};
struct CrossEntropyGradientArgs {
  SoftmaxArgs softmax;
  ClassArgs classes;
  UpstreamArgs upstream;
};

#if PLAIT_KERNELS
// The logarithm of the sum of exponentials of each row, and its loss.
template <class E>
struct RowEntropy : ElementLogSums<E> {
  using typename ElementLogSums<E>::T;
  using typename ElementLogSums<E>::Value;
  const CrossEntropyArgs &args;
  PLAIT_DEVICE RowEntropy(Thread &t, const CrossEntropyArgs &a)
      : ElementLogSums<E>(t, a.reduce), args(a) {}
  PLAIT_DEVICE void finish(Thread &t, const ReduceArgs &a, int64_t i, const Value &value) const {
    const Targets<E> targets(t, args.classes);
    const int64_t target = targets.of(i);
    t.global<E>(a.out).store(i, narrow<E>(value_of(value)));
    T loss = T(0);
    if (target >= 0) {
      const int64_t at = targets.first(i) + target * args.classes.step;
      loss = scalar::math::log(sum_or_nan(value)) -
             (widen(t.global<const E>(args.scores).load(at)) - value.top);
    }
    if (args.losses)
      t.global<T>(args.losses).store(i, loss);
    else
      t.global<E>(args.out).store(i, narrow<E>(loss * targets.factor(target)));
  }
};

// scale (softmax - [class is target])
template <class E>
struct EntropyGradient {
  using T = Compute<E>;
  Thread &t;
  const CrossEntropyGradientArgs &a;
  struct Row {
    T scale;
    int64_t target;
    PLAIT_DEVICE T operator()(int64_t k, T y) const {
      if (target < 0) return T(0);
      return k == target ? scale * y - scale : scale * y;
    }
  };
  PLAIT_DEVICE Row row(int64_t i) const {
    const Targets<E> targets(t, a.classes);
    const int64_t target = targets.of(i);
    return {target < 0 ? T(0) : upstream<E>(t, a.upstream, i) * targets.factor(target), target};
  }
};

template <class T>
PLAIT_DEVICE void cross_entropy_rows(Block &t, const CrossEntropyArgs &a) {
  reduce<RowEntropy<T>>(t, a, a.reduce);
}
template <class T>
PLAIT_DEVICE void cross_entropy_sums(Block &t, const RowLossArgs &a) {
  reduce<RowLosses<T>>(t, a, a.reduce);
}
template <class T>
PLAIT_DEVICE void cross_entropy_gradient_rows(Block &t, const CrossEntropyGradientArgs &a) {
  softmax_of_rows<T>(t, a.softmax, EntropyGradient<T>{t, a});
}
template <class T>
PLAIT_DEVICE void cross_entropy_gradient_long_rows(Block &t, const CrossEntropyGradientArgs &a) {
  softmax_of_long_rows<T>(t, a.softmax, EntropyGradient<T>{t, a});
}
template <class T>
PLAIT_DEVICE void cross_entropy_gradient_columns(Block &t, const CrossEntropyGradientArgs &a) {
  softmax_of_columns<T>(t, a.softmax, EntropyGradient<T>{t, a});
}
#endif
PLAIT_DEVICE_KERNEL(cross_entropy_rows, CrossEntropyArgs, 256, FLOATING);
PLAIT_DEVICE_KERNEL(cross_entropy_sums, RowLossArgs, 256, FLOATING);
PLAIT_DEVICE_KERNEL(cross_entropy_gradient_rows, CrossEntropyGradientArgs, 256, FLOATING);
PLAIT_DEVICE_KERNEL(cross_entropy_gradient_long_rows, CrossEntropyGradientArgs, 512, FLOATING);
PLAIT_DEVICE_KERNEL(cross_entropy_gradient_columns, CrossEntropyGradientArgs, 256, FLOATING);

#if PLAIT_HOST
namespace {

// cross_entropy_forward(input, target, weight, reduction, ignore_index) -> (loss, log-sum-exp of
// each row)
plait_status cross_entropy(plait_call *c) {
  const DLTensor *in = tensor(c, 0);
  const Kind k = kind(in->dtype);
  const int reduction = loss_reduction_of(c, 3);
  Operand scores;
  ClassOperands classes;
  DeviceWorkspace losses;
  PLAIT_TRY(scores.take_dense(c, in));
  PLAIT_TRY(classes.take(c, 1, 2, integer(c, 4, -100), in->shape, in->ndim));
  CrossEntropyArgs a{};
  a.reduce.out = result(c, 1)->data, a.classes = classes.args, a.scores = scores.data();
  if (reduction == loss_reduction::NONE) {
    a.out = result(c)->data;
  } else {
    PLAIT_TRY(losses.take(c, classes.args.rows * (k == F64 ? 8 : 4)));
    a.losses = losses.data();
  }
  PLAIT_TRY(
      launch_reduction(c, cross_entropy_rows_kernel, scores.tensor(), in->ndim > 1 ? 2 : 1, a));
  if (reduction == loss_reduction::NONE) return PLAIT_OK;
  RowLossArgs sums{};
  sums.reduce.out = result(c)->data, sums.reduce.mode = reduction;
  sums.losses = losses.data(), sums.scores = scores.data();
  return classes.reduce(c, cross_entropy_sums_kernel, k, sums);
}

// cross_entropy_backward(grad, input, lse, target, weight, reduction, ignore_index). The rounded
// `lse` is not read: the probabilities of a row would not sum to 1.
plait_status cross_entropy_backward(plait_call *c) {
  const DLTensor *in = tensor(c, 1), *out = result(c);
  const Kind k = kind(in->dtype);
  if (numel(in) == 0) return PLAIT_OK;
  Operand scores;
  ClassOperands classes;
  UpstreamOperands up;
  PLAIT_TRY(scores.take_dense(c, in));
  PLAIT_TRY(classes.take(c, 3, 4, integer(c, 6, -100), in->shape, in->ndim));
  PLAIT_TRY(
      up.take(c, tensor(c, 0), loss_reduction_of(c, 5), classes, cross_entropy_sums_kernel, k));
  CrossEntropyGradientArgs a{};
  a.classes = classes.args, a.upstream = up.args;
  a.softmax.x = scores.data(), a.softmax.y = out->data, a.softmax.inner = classes.args.step;
  a.softmax.shape =
      row_shape(classes.args.rows, classes.args.classes, size_of(k), {a.softmax.x, a.softmax.y});
  return launch_softmax(c, k, a, a.softmax, cross_entropy_gradient_rows_kernel,
                        cross_entropy_gradient_long_rows_kernel,
                        cross_entropy_gradient_columns_kernel);
}

PLAIT_KERNEL("cross_entropy_forward", cross_entropy);
PLAIT_KERNEL("cross_entropy_backward", cross_entropy_backward);

}  // namespace
#endif
}  // namespace plait::cuda
