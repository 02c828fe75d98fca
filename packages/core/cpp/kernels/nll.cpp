// Negative log-likelihood and cross-entropy, and their gradients.
#include "kernels/indices.h"
#include "scalar/math.h"

namespace plait::core {
namespace {

// input (n, classes, inner) seen through one index of places (n, inner); unbatched: n = inner = 1.
struct Places {
  int64_t n = 1, classes, inner = 1;
  Places(const int64_t *shape, int ndim) : classes(shape[ndim > 1 ? 1 : 0]) {
    if (ndim > 1) n = shape[0];
    for (int d = 2; d < ndim; d++) inner *= shape[d];
  }
  int64_t count() const { return n * inner; }
};

enum class Reduction { Mean, Sum, None };
Reduction reduction_of(const plait_call *c, int i) {
  return text_is(c, i, "none")  ? Reduction::None
         : text_is(c, i, "sum") ? Reduction::Sum
                                : Reduction::Mean;
}

plait_status targets(const plait_call *c, const DLTensor *t, int64_t classes, int64_t ignore,
                     Indices *at) {
  PLAIT_TRY(at->read(c, t, -1, 0));
  for (int64_t i = 0; i < at->count(); i++)
    if (((*at)[i] < 0 || (*at)[i] >= classes) && (*at)[i] != ignore)
      return PLAIT_FAIL(c, PLAIT_INDEX_ERROR,
                        "`target` must hold classes in [0, %lld) or ignore_index %lld; got %lld",
                        (long long)classes, (long long)ignore, (long long)(*at)[i]);
  return PLAIT_OK;
}

template <class T>
struct Weights {  // one for each class; all 1 where there is no tensor
  const T *p = nullptr;
  int64_t step = 0;
  explicit Weights(const DLTensor *t) {
    if (t) p = data<T>(t), step = t->strides[0];
  }
  T operator[](int64_t k) const { return p ? p[k * step] : T(1); }
};

template <class T>
void forward(const DLTensor *input, const Places &p, const Indices &at, const Weights<T> &w,
             int64_t ignore, Reduction how, T *out) {
  const int64_t class_step = input->strides[input->ndim > 1 ? 1 : 0];
  int64_t stride[PLAIT_MAX_DIMS], shape[PLAIT_MAX_DIMS];
  int nd = 0;
  for (int d = 0; d < input->ndim; d++) {
    if (d == (input->ndim > 1 ? 1 : 0)) continue;
    shape[nd] = input->shape[d];
    stride[nd++] = input->strides[d];
  }
  Counter place(nd, shape, stride);
  double sum = 0, weight = 0;
  for (int64_t i = 0; i < p.count(); i++, place.next()) {
    const bool skip = at[i] == ignore;
    const T own = skip ? T(0) : w[at[i]];
    const T loss = skip ? T(0) : -own * data<T>(input)[place.offset + at[i] * class_step];
    if (how == Reduction::None) out[i] = loss;
    sum += double(loss);
    weight += double(own);
  }
  if (how == Reduction::Sum) *out = T(sum);
  if (how == Reduction::Mean) *out = T(sum / weight);
}

// nll_loss(input, target, weight, reduction, ignore_index)
plait_status nll_loss(plait_call *c) {
  const DLTensor *input = tensor(c, 0);
  const Places p(input->shape, input->ndim);
  const int64_t ignore = integer(c, 4);
  Indices at;
  PLAIT_TRY(targets(c, tensor(c, 1), p.classes, ignore, &at));
  PLAIT_FLOATING(kind(input->dtype), forward<T>(input, p, at, Weights<T>(tensor(c, 2)), ignore,
                                                reduction_of(c, 3), data<T>(result(c))))
  return PLAIT_OK;
}
PLAIT_KERNEL("nll_loss", nll_loss);

template <class T>
void backward(const DLTensor *gy, const Places &p, const Indices &at, const Weights<T> &w,
              int64_t ignore, Reduction how, T *out) {
  double weight = 0;
  for (int64_t i = 0; i < p.count(); i++) weight += at[i] == ignore ? 0 : double(w[at[i]]);
  T scale = how == Reduction::None ? T(1) : *data<T>(gy);
  if (how == Reduction::Mean) scale = T(double(scale) / weight);
  Counter place(gy->ndim, gy->shape, gy->strides);
  for (int64_t n = 0, i = 0; n < p.n; n++) {
    for (int64_t k = 0; k < p.inner; k++, i++) {
      if (how == Reduction::None) {
        scale = data<T>(gy)[place.offset];
        place.next();
      }
      if (at[i] != ignore) out[(n * p.classes + at[i]) * p.inner + k] = -scale * w[at[i]];
    }
  }
}

// nll_loss_backward(grad, target, weight, size, reduction, ignore_index)
plait_status nll_loss_backward(plait_call *c) {
  DLTensor *out = result(c);
  const Places p(out->shape, out->ndim);
  const int64_t ignore = integer(c, 5);
  Indices at;
  PLAIT_TRY(targets(c, tensor(c, 1), p.classes, ignore, &at));
  memset(out->data, 0, size_t(numel(out)) * size_t(out->dtype.bits / 8));
  PLAIT_FLOATING(kind(out->dtype), backward<T>(tensor(c, 0), p, at, Weights<T>(tensor(c, 2)),
                                               ignore, reduction_of(c, 4), data<T>(out)))
  return PLAIT_OK;
}
PLAIT_KERNEL("nll_loss_backward", nll_loss_backward);

// ---- cross-entropy: the pass over the classes that softmax, logarithm and loss share
// -------------------------------- Input elements of one place lie class_step apart.
template <class T>
T log_sum_exp(const T *x, int64_t step, int64_t n) {
  constexpr int kLane = 8;
  T m = x[0], lane[kLane] = {}, sum = 0;
  for (int64_t k = 1; k < n; k++) m = x[k * step] > m ? x[k * step] : m;
  int64_t k = 0;
  for (; k + kLane <= n; k += kLane)
    for (int j = 0; j < kLane; j++) lane[j] += scalar::math::exp(x[(k + j) * step] - m);
  for (; k < n; k++) sum += scalar::math::exp(x[k * step] - m);
  for (int j = 0; j < kLane; j++) sum += lane[j];
  return m + scalar::math::log(sum);
}

// The places of input: offsets of their first class.
struct Rows {
  int nd = 0, c;
  int64_t shape[PLAIT_MAX_DIMS], stride[PLAIT_MAX_DIMS], class_step;
  explicit Rows(const DLTensor *input) : c(input->ndim > 1 ? 1 : 0), class_step(input->strides[c]) {
    for (int d = 0; d < input->ndim; d++) {
      if (d == c) continue;
      shape[nd] = input->shape[d];
      stride[nd++] = input->strides[d];
    }
  }
};

template <class T>
void entropy(const DLTensor *input, const Places &p, const Indices &at, const Weights<T> &w,
             int64_t ignore, Reduction how, T *out, T *lse) {
  const Rows rows(input);
  Counter place(rows.nd, rows.shape, rows.stride);
  double sum = 0, weight = 0;
  for (int64_t i = 0; i < p.count(); i++, place.next()) {
    const T *x = data<T>(input) + place.offset;
    lse[i] = log_sum_exp(x, rows.class_step, p.classes);
    const bool skip = at[i] == ignore;
    const T own = skip ? T(0) : w[at[i]],
            loss = skip ? T(0) : own * (lse[i] - x[at[i] * rows.class_step]);
    if (how == Reduction::None) out[i] = loss;
    sum += double(loss);
    weight += double(own);
  }
  if (how == Reduction::Sum) *out = T(sum);
  if (how == Reduction::Mean) *out = T(sum / weight);
}

// cross_entropy_forward(input, target, weight, reduction, ignore_index) -> (loss, logarithm of the
// sum of exponentials)
plait_status cross_entropy(plait_call *c) {
  const DLTensor *input = tensor(c, 0);
  const Places p(input->shape, input->ndim);
  if (p.classes == 0) return PLAIT_DECLINE;
  const int64_t ignore = integer(c, 4);
  Indices at;
  PLAIT_TRY(targets(c, tensor(c, 1), p.classes, ignore, &at));
  PLAIT_FLOATING(kind(input->dtype),
                 entropy<T>(input, p, at, Weights<T>(tensor(c, 2)), ignore, reduction_of(c, 3),
                            data<T>(result(c, 0)), data<T>(result(c, 1))))
  return PLAIT_OK;
}
PLAIT_KERNEL("cross_entropy_forward", cross_entropy);

template <class T>
void entropy_backward(const DLTensor *gy, const DLTensor *input, const DLTensor *lse,
                      const Places &p, const Indices &at, const Weights<T> &w, int64_t ignore,
                      Reduction how, T *out) {
  double weight = 0;
  for (int64_t i = 0; how == Reduction::Mean && i < p.count(); i++)
    weight += at[i] == ignore ? 0 : double(w[at[i]]);
  T scale = how == Reduction::None ? T(1) : *data<T>(gy);
  if (how == Reduction::Mean) scale = T(double(scale) / weight);
  const Rows rows(input);
  Counter place(rows.nd, rows.shape, rows.stride), from(lse->ndim, lse->shape, lse->strides);
  Counter own(gy->ndim, gy->shape, gy->strides);
  for (int64_t i = 0; i < p.count(); i++, place.next(), from.next()) {
    if (how == Reduction::None) {
      scale = data<T>(gy)[own.offset];
      own.next();
    }
    T *to = out + i / p.inner * p.classes * p.inner + i % p.inner;
    const bool skip = at[i] == ignore;
    const T *x = data<T>(input) + place.offset, shift = data<T>(lse)[from.offset],
            s = skip ? T(0) : scale * w[at[i]];
    for (int64_t k = 0; k < p.classes; k++)
      to[k * p.inner] = skip ? T(0) : s * scalar::math::exp(x[k * rows.class_step] - shift);
    if (!skip) to[at[i] * p.inner] -= s;
  }
}

// cross_entropy_backward(grad, input, lse, target, weight, reduction, ignore_index)
plait_status cross_entropy_backward(plait_call *c) {
  const DLTensor *input = tensor(c, 1);
  DLTensor *out = result(c);
  const Places p(out->shape, out->ndim);
  const int64_t ignore = integer(c, 6);
  Indices at;
  PLAIT_TRY(targets(c, tensor(c, 3), p.classes, ignore, &at));
  PLAIT_FLOATING(kind(out->dtype), entropy_backward<T>(tensor(c, 0), input, tensor(c, 2), p, at,
                                                       Weights<T>(tensor(c, 4)), ignore,
                                                       reduction_of(c, 5), data<T>(out)))
  return PLAIT_OK;
}
PLAIT_KERNEL("cross_entropy_backward", cross_entropy_backward);

}  // namespace
}  // namespace plait::core
