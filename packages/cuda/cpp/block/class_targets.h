// Shared by the losses over classes: targets with class weights, and the reduction of the losses of
// rows.
#pragma once
#include "block/reduce.h"

namespace plait::cuda {

// Scores of shape (rows / step, classes, step) and the class of each row.
struct ClassArgs {
  const int64_t *target;  // dense
  const void *weight;  // of classes, `weight_step` elements apart, or NULL
  int64_t weight_step, ignore, classes, step, rows;
  Fault fault;
};

namespace loss_reduction {
enum { NONE, SUM, MEAN };
}

// The factor of a row's gradient: `grad` of the row or of all, and the sum of weights for the mean.
struct UpstreamArgs {
  const void *grad;
  const double *total;  // NULL: not divided
  int32_t is_each;
};

// The sum of the losses of rows, or of their factors alone. `losses` has one for each row; without
// it losses are the negative scores of the targets.
struct RowLossArgs {
  ReduceArgs reduce;
  ClassArgs classes;
  const void *scores, *losses;
  double *total;  // for the sum of factors alone
};

}  // namespace plait::cuda

#if PLAIT_KERNELS
namespace plait::cuda {

template <class E>
class Targets {
 public:
  using T = Compute<E>;
  // `reports`: of several kernels of one call only one reports wrong classes.
  PLAIT_DEVICE Targets(Thread &t, const ClassArgs &a, bool reports = true)
      : t_(t), a_(a), weight_(t.global<const E>(a.weight)), reports_(reports) {}
  // The class of a row whose target is known, -1 if it does not count. Another one than the classes
  // is an error.
  PLAIT_DEVICE int64_t checked(int64_t target) const {
    if (target == a_.ignore) return -1;
    if (target >= 0 && target < a_.classes) return target;
    if (reports_) t_.fail(a_.fault, kIndexFault, double(target), 0, double(a_.classes));
    return -1;
  }
  PLAIT_DEVICE int64_t of(int64_t row) const {
    return checked(t_.global<const int64_t>(a_.target).load(row));
  }
  PLAIT_DEVICE T factor(int64_t target) const {
    if (target < 0) return T(0);
    return a_.weight ? widen(weight_.load(target * a_.weight_step)) : T(1);
  }
  // Where the score of class 0 of a row is.
  PLAIT_DEVICE int64_t first(int64_t row) const {
    return row / a_.step * a_.step * a_.classes + row % a_.step;
  }

 private:
  Thread &t_;
  const ClassArgs &a_;
  Global<const E> weight_;
  bool reports_;
};

template <class E>
PLAIT_DEVICE Compute<E> upstream(Thread &t, const UpstreamArgs &a, int64_t row) {
  using T = Compute<E>;
  const T g = widen(t.global<const E>(a.grad).load(a.is_each ? row : 0));
  return a.total ? T(double(g) / t.global<const double>(a.total).load(0)) : g;
}

struct LossSum {
  double loss, weight;
};
template <class E>
struct RowLosses : Elements<int64_t> {
  using T = Compute<E>;
  using Value = LossSum;
  const RowLossArgs &args;
  Targets<E> targets;
  Global<const E> scores;
  Global<const T> losses;
  PLAIT_DEVICE RowLosses(Thread &t, const RowLossArgs &a)
      : Elements<int64_t>(t, a.reduce),
        args(a),
        targets(t, a.classes, !a.losses && !a.total),
        scores(t.global<const E>(a.scores)),
        losses(t.global<const T>(a.losses)) {}
  PLAIT_DEVICE Value start() const { return {0, 0}; }
  PLAIT_DEVICE Value step(const Value &a, const Value &b) const {
    return {a.loss + b.loss, a.weight + b.weight};
  }
  template <int N, int width>
  PLAIT_DEVICE void fold(Value &value, const int64_t *x, int64_t first, int64_t apart) const {
#pragma unroll
    for (int k = 0; k < N; k++) {
      const int64_t target = targets.checked(x[k]);
      if (target < 0) continue;
      const int64_t row = first + k / width * apart + k % width;
      const double factor = double(targets.factor(target));
      value.weight += factor;
      if (args.total) continue;
      const T loss = args.losses
                         ? losses.load(row)
                         : -widen(scores.load(targets.first(row) + target * args.classes.step));
      value.loss += double(loss) * factor;
    }
  }
  PLAIT_DEVICE void finish(Thread &t, const ReduceArgs &a, int64_t, const Value &value) const {
    const bool is_mean = a.mode == loss_reduction::MEAN;
    if (args.total)
      t.global<double>(args.total).store(0, value.weight);
    else
      t.global<E>(a.out).store(0, narrow<E>(T(is_mean ? value.loss / value.weight : value.loss)));
  }
};

}  // namespace plait::cuda
#endif
