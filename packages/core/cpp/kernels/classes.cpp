// Losses of classes: nll_loss, and cross_entropy in one pass over the scores.
#include "kernels/dense.h"
#include "kernels/exp_rows.h"
#include "kernels/indices.h"

namespace plait::core {
namespace {

enum class Reduce { kNone, kSum, kMean };
Reduce reduction(const plait_call *c, int i) {
  return text_is(c, i, "mean")  ? Reduce::kMean
         : text_is(c, i, "sum") ? Reduce::kSum
                                : Reduce::kNone;
}

// Scores of shape (classes), (n, classes) or (n, classes, ...): `rows` distributions whose elements
// are `step` apart.
struct Scores {
  int64_t classes, step, rows;
  explicit Scores(const int64_t *shape, int64_t ndim) : classes(shape[ndim > 1]), step(1), rows(1) {
    for (int64_t d = 2; d < ndim; d++) step *= shape[d];
    rows = ndim > 1 ? shape[0] * step : 1;
  }
  int64_t first(int64_t row) const { return row / step * step * classes + row % step; }
};

// Targets and class weights; a row whose target is `ignore` counts nothing.
template <class T>
struct Targets {
  Indices target;
  const DLTensor *weight;
  int64_t ignore, classes;

  plait_status take(const plait_call *c, int target_at, int weight_at, int64_t ignore_index,
                    const Scores &s) {
    weight = tensor(c, weight_at);
    ignore = ignore_index;
    classes = s.classes;
    PLAIT_TRY(target.read(c, tensor(c, target_at), -1, 0));
    const int64_t *t = target.begin();
    for (int64_t i = 0; i < s.rows; i++)
      if (t[i] != ignore && (t[i] < 0 || t[i] >= classes))
        return PLAIT_FAIL(c, PLAIT_INDEX_ERROR,
                          "`target` must hold classes in [0, %lld); got %lld at row %lld",
                          (long long)classes, (long long)t[i], (long long)i);
    return PLAIT_OK;
  }
  int64_t at(int64_t row) const { return target[row]; }
  T factor(int64_t row) const {  // 0: ignored
    const int64_t t = at(row);
    if (t == ignore) return T(0);
    return weight ? data<T>(weight)[t * weight->strides[0]] : T(1);
  }
  double sum(int64_t rows) const {
    double total = 0;
    for (int64_t i = 0; i < rows; i++) total += double(factor(i));
    return total;
  }
};

// Puts the losses of all rows together as `reduction` says.
template <class T, class F>
plait_status finish(const Scores &s, const Targets<T> &t, Reduce how, T *out, F &&loss) {
  if (how == Reduce::kNone) {
    for (int64_t i = 0; i < s.rows; i++)
      out[i] = t.at(i) == t.ignore ? T(0) : loss(i) * t.factor(i);
    return PLAIT_OK;
  }
  double total = 0;
  for (int64_t i = 0; i < s.rows; i++)
    if (t.at(i) != t.ignore) total += double(loss(i)) * double(t.factor(i));
  out[0] = T(how == Reduce::kMean ? total / t.sum(s.rows) : total);
  return PLAIT_OK;
}

// The factor of each row's gradient.
template <class T>
struct Upstream {
  const DLTensor *grad;
  Reduce how;
  T scale;
  Upstream(const DLTensor *g, Reduce r, const Scores &s, const Targets<T> &t)
      : grad(g), how(r), scale(1) {
    if (how != Reduce::kNone) scale = data<T>(g)[0];
    if (how == Reduce::kMean) scale = T(double(scale) / t.sum(s.rows));
  }
};

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
  PLAIT_TRY(space.take(c, uint64_t(chunks * 2 * n) * sizeof(T)));
  PLAIT_TRY(chosen.take(c, uint64_t(s.rows) * sizeof(T)));
  T *loss = chosen.as<T>();
  parallel(c, chunks, [&](int64_t chunk) {
    T *scratch = space.as<T>() + chunk * 2 * n, *row = scratch + n;
    for (int64_t i = chunk * each; i < (chunk + 1) * each && i < s.rows; i++) {
      const T *from = p + s.first(i);
      if (s.step != 1)
        for (int64_t k = 0; k < n; k++) row[k] = from[k * s.step];
      const LogSum<T> sum = log_sum(s.step == 1 ? from : row, n, scratch);
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
      // the saved logarithm is rounded, to several units where numbers are large: shares that do
      // not add up to 1 are made to
      if (s.step == 1) {
        exp_row(from, shift, s.classes, to);
        const T share = scale / total(to, s.classes);
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

plait_status nll_loss(plait_call *c) {
  PLAIT_FLOATING(kind(result(c)->dtype), return nll_loss_as<T>(c, tensor(c, 0)))
  return PLAIT_OK;
}
plait_status nll_loss_backward(plait_call *c) {
  PLAIT_FLOATING(kind(result(c)->dtype), return nll_loss_backward_as<T>(c, result(c)))
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

PLAIT_KERNEL("nll_loss", nll_loss);
PLAIT_KERNEL("nll_loss_backward", nll_loss_backward);
PLAIT_KERNEL("cross_entropy_forward", cross_entropy);
PLAIT_KERNEL("cross_entropy_backward", cross_entropy_backward);

}  // namespace
}  // namespace plait::core
