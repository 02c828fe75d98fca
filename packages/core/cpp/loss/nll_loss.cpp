// The negative log-likelihood loss and its derivative.
#include "kernel/dense.h"
#include "loss/class_targets.h"

namespace plait::core::loss {
namespace {

// nll_loss(input, target, weight, reduction, ignore_index)
template <class T>
plait_status nll_loss_as(const plait_call *c, const DLTensor *in) {
  const Scores s(in->shape, in->ndim);
  Targets<T> t;
  PLAIT_TRY(t.take(c, 1, 2, integer(c, 4, -100), s));
  Dense<T> x;
  PLAIT_TRY(x.take(c, in));
  const T *p = x;
  return finish(s, t, reduction(c, 3), data<T>(result(c)),
                [&](int64_t i) { return -p[s.first(i) + t.at(i) * s.step]; });
}

// nll_loss_backward(grad, target, weight, size, reduction, ignore_index)
template <class T>
plait_status nll_loss_backward_as(const plait_call *c, DLTensor *out) {
  const Scores s(out->shape, out->ndim);
  Targets<T> t;
  PLAIT_TRY(t.take(c, 1, 2, integer(c, 5, -100), s));
  Dense<T> g;
  PLAIT_TRY(g.take(c, tensor(c, 0)));
  const T *each = g;
  const Upstream<T> up(tensor(c, 0), reduction(c, 4), s, t);
  T *gx = data<T>(out);
  memset(gx, 0, size_t(numel(out)) * sizeof(T));
  for (int64_t i = 0; i < s.rows; i++) {
    if (t.at(i) == t.ignore) continue;
    const T scale = up.how == Reduce::kNone ? each[i] : up.scale;
    gx[s.first(i) + t.at(i) * s.step] = -scale * t.factor(i);
  }
  return PLAIT_OK;
}

plait_status nll_loss(plait_call *c) {
  PLAIT_FLOATING(kind(result(c)->dtype), return nll_loss_as<T>(c, tensor(c, 0)))
  return PLAIT_OK;
}
plait_status nll_loss_backward(plait_call *c) {
  PLAIT_FLOATING(kind(result(c)->dtype), return nll_loss_backward_as<T>(c, result(c)))
  return PLAIT_OK;
}

PLAIT_KERNEL("nll_loss", nll_loss);
PLAIT_KERNEL("nll_loss_backward", nll_loss_backward);

}  // namespace
}  // namespace plait::core::loss
