// Cross-entropy of scores and classes in one pass over the scores, and its derivative.
#include "kernel/dense.h"
#include "loss/class_targets.h"
#include "normalization/softmax_rows.h"

namespace plait::core::loss {
namespace {

// cross_entropy_forward(input, target, weight, reduction, ignore_index) -> (loss, log-sum-exp of
// each row)
template <class T>
plait_status cross_entropy_as(const plait_call *c, const DLTensor *in) {
  const Scores s(in->shape, in->ndim);
  Targets<T> t;
  PLAIT_TRY(t.take(c, 1, 2, integer(c, 4, -100), s));
  Dense<T> x;
  PLAIT_TRY(x.take(c, in));
  const T *p = x;
  T *lse = data<T>(result(c, 1));
  const int64_t n = s.classes, each = kSerial / 4 / (n + 1) + 1, chunks = ceil_div(s.rows, each);
  Workspace space, chosen;
  PLAIT_TRY(space.take(c, s.step == 1 ? 0 : uint64_t(chunks * n) * sizeof(T)));
  PLAIT_TRY(chosen.take(c, uint64_t(s.rows) * sizeof(T)));
  T *loss = chosen.as<T>();
  parallel(c, chunks, [&](int64_t chunk) {
    T *row = space.as<T>() + chunk * n;
    for (int64_t i = chunk * each; i < (chunk + 1) * each && i < s.rows; i++) {
      const T *from = p + s.first(i);
      if (s.step != 1)
        for (int64_t k = 0; k < n; k++) row[k] = from[k * s.step];
      const LogSum<T> sum = log_sum(s.step == 1 ? from : row, n);
      lse[i] = sum.value();
      if (t.at(i) != t.ignore) loss[i] = sum.rest - (from[t.at(i) * s.step] - sum.top);
    }
  });
  return finish(s, t, reduction(c, 3), data<T>(result(c)), [&](int64_t i) { return loss[i]; });
}

// cross_entropy_backward(grad, input, lse, target, weight, reduction, ignore_index)
template <class T>
plait_status cross_entropy_backward_as(const plait_call *c, DLTensor *out) {
  const Scores s(out->shape, out->ndim);
  Targets<T> t;
  PLAIT_TRY(t.take(c, 3, 4, integer(c, 6, -100), s));
  Dense<T> g, x, lse;
  PLAIT_TRY(g.take(c, tensor(c, 0)));
  PLAIT_TRY(x.take(c, tensor(c, 1)));
  PLAIT_TRY(lse.take(c, tensor(c, 2)));
  const T *each = g, *p = x, *sums = lse;
  const Upstream<T> up(tensor(c, 0), reduction(c, 5), s, t);
  T *gx = data<T>(out);
  parallel_ranges(c, s.rows, kSerial / 4 / (s.classes + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      const T scale = (up.how == Reduce::kNone ? each[i] : up.scale) * t.factor(i);
      const T *from = p + s.first(i), shift = sums[i];
      T *to = gx + s.first(i);
      if (t.at(i) == t.ignore) {
        for (int64_t k = 0; k < s.classes; k++) to[k * s.step] = T(0);
        continue;
      }
      // the saved logarithm is rounded, by several units where numbers are large, so the
      // probabilities are normalised to a sum of 1
      if (s.step == 1) {
        const T share = scale / exp_row_total(from, shift, s.classes, to);
        for (int64_t k = 0; k < s.classes; k++) to[k] *= share;
      } else {
        T sum = T(0);
        for (int64_t k = 0; k < s.classes; k++)
          sum += to[k * s.step] = math::exp(from[k * s.step] - shift);
        const T share = scale / sum;
        for (int64_t k = 0; k < s.classes; k++) to[k * s.step] *= share;
      }
      to[t.at(i) * s.step] -= scale;
    }
  });
  return PLAIT_OK;
}

plait_status cross_entropy(plait_call *c) {
  PLAIT_FLOATING(kind(result(c)->dtype), return cross_entropy_as<T>(c, tensor(c, 0)))
  return PLAIT_OK;
}
plait_status cross_entropy_backward(plait_call *c) {
  PLAIT_FLOATING(kind(result(c)->dtype), return cross_entropy_backward_as<T>(c, result(c)))
  return PLAIT_OK;
}

PLAIT_KERNEL("cross_entropy_forward", cross_entropy);
PLAIT_KERNEL("cross_entropy_backward", cross_entropy_backward);

}  // namespace
}  // namespace plait::core::loss
