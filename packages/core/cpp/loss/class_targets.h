// Shared by the losses over classes: scores, targets with class weights, and the reduction of the
// losses of rows.
#pragma once
#include "kernel/indices.h"

namespace plait::core::loss {

enum class Reduce { kNone, kSum, kMean };
inline Reduce reduction(const plait_call *c, int i) {
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

// Targets and class weights; a row whose target is `ignore` does not count.
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
                          "`target` must hold classes in [0, %lld); got %lld at row %lld. "
                          "Target %lld is out of bounds",
                          (long long)classes, (long long)t[i], (long long)i, (long long)t[i]);
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

// Reduces the losses of all rows as `reduction` says.
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

}  // namespace plait::core::loss
