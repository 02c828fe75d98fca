// Batch normalisation with the batch's own statistics, what follows it in the same pass (a sum with
// another tensor, an activation), and the derivatives: channel by channel, so that the second
// reading finds a channel in a cache.
#include "normalization/batch_norm.h"

#include <type_traits>

#include "kernel/dense.h"
#include "kernel/half.h"
#include "kernel/integers.h"
#include "kernel/past_caches.h"

namespace plait::core {
namespace {

template <class T>
T factor(const DLTensor *t, int64_t channel, T absent) {
  return t ? data<T>(t)[channel * t->strides[0]] : absent;
}

// The same in all passes, forward and backward: what is computed anew has the same bits.
template <class T>
Affine<T> affine(const DLTensor *weight, const DLTensor *bias, int64_t k, T mean, double var,
                 double eps) {
  const T scale = T(1 / __builtin_sqrt(var + eps)) * factor(weight, k, T(1));
  return {mean, scale, factor(bias, k, T(0))};
}

// y = activation(normalised x + residual); `residual` may be NULL. F: Affine or AffineRow.
template <class F, class T, class A>
void apply(const F f, const A activation, const T *x, const T *residual, T *y, int64_t n) {
  if (residual) {
#pragma GCC ivdep
    for (int64_t j = 0; j < n; j++) y[j] = activation(f.at(j)(x[j]) + residual[j]);
  } else {
#pragma GCC ivdep
    for (int64_t j = 0; j < n; j++) y[j] = activation(f.at(j)(x[j]));
  }
}

template <class T>
bool is_past_caches(const Channels &s) {
  return s.channels * s.count() * int64_t(sizeof(T)) >= kPastCaches;
}

// (input, ..., eps, ...) -> (result, mean, biased variance)
template <class T, class A>
plait_status forward(const plait_call *c, const DLTensor *in, const DLTensor *other,
                     const DLTensor *weight, const DLTensor *bias, double eps,
                     const A &activation) {
  const Channels s(in);
  const bool past = is_past_caches<T>(s);
  Dense<T> input, residual;
  PLAIT_TRY(input.take(c, in));
  if (other) PLAIT_TRY(residual.take(c, other));
  const T *x = input, *r = other ? static_cast<const T *>(residual) : nullptr;
  T *y = data<T>(result(c)), *mean = data<T>(result(c, 1)), *var = data<T>(result(c, 2));
  const auto factors = [&](int64_t k, const Moments &m) {
    mean[k] = T(s.count() ? m.mean : __builtin_nan(""));
    var[k] = T(m.squares / double(s.count()));
    return affine(weight, bias, k, mean[k], double(var[k]), eps);
  };
  if (s.side_by_side()) {
    each_block(c, s, [&](int64_t first, int64_t channels) {
      const int64_t columns = channels * s.run, begin = first * s.run;
      Moments all[kColumns];
      column_moments(s, x + begin, columns, all);
      AffineColumns<T> f;
      for (int64_t k = 0; k < channels; k++)
        f.put(k * s.run, s.run, factors(first + k, joined_moments(s, x + begin, all, k)));
      for (int64_t at = begin + s.n * s.step(); (at -= s.step()) >= 0;)
        apply(f.row(), activation, x + at, r ? r + at : nullptr, y + at, columns);
    });
    return PLAIT_OK;
  }
  parallel_ranges(c, s.channels, s.grain(), [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; k++) {
      const int64_t first = k * s.run;
      const Affine<T> f = factors(k, channel_moments(s, x + first));
      each_segment<true>(
          s,
          [&](int64_t at, int64_t n) {
            at += first;
            T room[kSegment], *to = past ? room : y + at;
            apply(f, activation, x + at, r ? r + at : nullptr, to, n);
            if (past) copy_row_past(y + at, to, n);
          },
          [&](int64_t at) {
            if (r) fetch_run(s, r + first + at);
          });
    }
    finish_stores();
  });
  return PLAIT_OK;
}

// Gradients of a normalisation and what follows it. `seen` is what the activation's derivative
// reads: its result, or NULL where that is computed anew from the input.
template <class T, class A>
class Derivative {
 public:
  Derivative(const Channels &s, const A &activation, const T *g, const T *x, const T *seen, T *gx,
             T *g_residual)
      : s_(s), activation_(activation), g_(g), x_(x), seen_(seen), gx_(gx), gr_(g_residual) {}

  // The sums of the channel that begins at `first`.
  GradientSums<T> sums(int64_t first, const Affine<T> &f) const {
    GradientSums<T> sum;
    each_segment<false>(
        s_,
        [&](int64_t at, int64_t n) {
          at += first;
          T room[kSegment];
          sum.add(masked(at, n, f, kept() ? kept() + at : room), x_ + at, f.mean, n);
        },
        [&](int64_t at) {
          fetch_run(s_, g_ + first + at);
          fetch_run(s_, x_ + first + at);
          if (seen_) fetch_run(s_, seen_ + first + at);
        });
    sum.join();
    return sum;
  }
  // The sums of gradients and of products with the input, of adjacent columns of which the first
  // begins at `first`.
  void column_sums(int64_t first, int64_t columns, const AffineRow<T> f, double *grads,
                   double *products) const {
    T grad[kColumns], product[kColumns], room[kColumns];
    each_column_sum(s_.n, columns, grads, products, grad, product, [&](int64_t i) {
      const int64_t at = first + i * s_.step();
      const T *g = masked(at, columns, f, kept() ? kept() + at : room), *x = x_ + at;
#pragma GCC ivdep
      for (int64_t j = 0; j < columns; j++) {
        grad[j] += g[j];
        product[j] = fused(g[j], x[j] - f.mean[j], product[j]);
      }
    });
  }
  // Write the input's gradient. `shift` has what is subtracted from the gradient of what the
  // activation saw: slope (x - mean) + base, as factors of x.
  void write(int64_t first, const Affine<T> &f, const Affine<T> &shift) const {
    const bool past = is_past_caches<T>(s_) && kept() != gx_;  // what was kept is in a cache
    each_segment<true>(
        s_,
        [&](int64_t at, int64_t n) {
          T room[kSegment], line[kSegment], *to = past ? line : gx_ + first + at;
          write_run(first + at, n, f, shift, room, to);
          if (past) copy_row_past(gx_ + first + at, to, n);
        },
        [](int64_t) {});
  }
  void write_columns(int64_t first, int64_t columns, const AffineRow<T> f,
                     const AffineRow<T> shift) const {
    T room[kColumns];
    for (int64_t i = s_.n; i-- > 0;) {
      const int64_t at = first + i * s_.step();
      write_run(at, columns, f, shift, room, gx_ + at);
    }
  }

 private:
  static constexpr bool plain = std::is_same<A, Identity>::value;

  // Where the first reading stores the gradient of the activation's input for the second one, or
  // NULL: a derivative that takes long is not computed twice.
  T *kept() const { return gr_ ? gr_ : A::by_result ? nullptr : gx_; }

  // The gradient of the activation's input. (Factors come by value, so that writing `to` changes
  // none.)
  template <class F>
  static void differentiate(const A activation, const F f, const T *g, const T *x, const T *seen,
                            T *to, int64_t n) {
    if (seen) {
#pragma GCC ivdep
      for (int64_t j = 0; j < n; j++) to[j] = activation.derivative(g[j], seen[j]);
    } else {
#pragma GCC ivdep
      for (int64_t j = 0; j < n; j++) to[j] = activation.derivative(g[j], f.at(j)(x[j]));
    }
  }
  template <class F>
  static void centre(const F f, const F shift, const T *m, const T *x, T *gx, int64_t n) {
#pragma GCC ivdep
    for (int64_t j = 0; j < n; j++) {
      const Affine<T> s = shift.at(j);
      gx[j] = f.at(j).scale * (m[j] - s.shift - (x[j] - s.mean) * s.scale);
    }
  }

  template <class F>
  const T *masked(int64_t at, int64_t n, const F &f, T *room) const {
    if (plain) return g_ + at;
    differentiate(activation_, f, g_ + at, x_ + at, seen_ ? seen_ + at : nullptr, room, n);
    return room;
  }
  template <class F>
  void write_run(int64_t at, int64_t n, const F &f, const F &shift, T *room, T *to) const {
    centre(f, shift, kept() ? kept() + at : masked(at, n, f, room), x_ + at, to, n);
  }

  const Channels s_;
  const A activation_;
  const T *g_, *x_, *seen_;
  T *gx_, *gr_;
};

struct Inputs {  // of the derivative
  const DLTensor *grad, *seen, *input, *mean, *var, *weight, *bias;
  double eps;
};

// -> by input, weight, bias and, if `seen` is given, by the residual
template <class T, class A>
plait_status backward(const plait_call *c, const Inputs &in, const A &activation) {
  const Channels s(in.input);
  Dense<T> grad, input, seen;
  PLAIT_TRY(grad.take(c, in.grad));
  PLAIT_TRY(input.take(c, in.input));
  if (in.seen) PLAIT_TRY(seen.take(c, in.seen));
  T *gw = data<T>(result(c, 1)), *gb = data<T>(result(c, 2));
  T *gx = data<T>(result(c)), *g_residual = in.seen ? data<T>(result(c, 3)) : nullptr;
  const T *g = grad, *x = input, *output = in.seen ? static_cast<const T *>(seen) : nullptr;
  const auto factors = [&](int64_t k) {
    return affine(in.weight, in.bias, k, factor(in.mean, k, T(0)), double(factor(in.var, k, T(1))),
                  in.eps);
  };
  const double count = double(s.count());
  // writes the gradients of a channel's factors; returns what is subtracted from the input's
  const auto finish = [&](int64_t k, T mean, double grad, double product) -> Affine<T> {
    const double var = double(factor(in.var, k, T(1)));
    const double r = count ? 1 / __builtin_sqrt(var + in.eps) : 0;  // without values var is NaN
    gw[k] = T(product * r);
    gb[k] = T(grad);
    return {mean, T(product * r * r / count), T(grad / count)};
  };
  const Derivative<T, A> d(s, activation, g, x, output, gx, g_residual);
  if (s.side_by_side()) {
    each_block(c, s, [&](int64_t first, int64_t channels) {
      const int64_t columns = channels * s.run, begin = first * s.run;
      AffineColumns<T> f, shift;
      for (int64_t k = 0; k < channels; k++) f.put(k * s.run, s.run, factors(first + k));
      double grads[kColumns], products[kColumns];
      d.column_sums(begin, columns, f.row(), grads, products);
      for (int64_t k = 0; k < channels; k++) {
        const int64_t at = k * s.run;
        for (int64_t j = 1; j < s.run; j++) {
          grads[at] += grads[at + j];
          products[at] += products[at + j];
        }
        shift.put(at, s.run, finish(first + k, f.mean[at], grads[at], products[at]));
      }
      d.write_columns(begin, columns, f.row(), shift.row());
    });
    return PLAIT_OK;
  }
  parallel_ranges(c, s.channels, s.grain(), [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; k++) {
      const Affine<T> f = factors(k);
      const GradientSums<T> sum = d.sums(k * s.run, f);
      d.write(k * s.run, f, finish(k, f.mean, sum.grad, sum.product));
    }
    finish_stores();
  });
  return PLAIT_OK;
}

// native_batch_norm(input, weight, bias, eps)
plait_status native_batch_norm(plait_call *c) {
  PLAIT_FLOATING(kind(result(c)->dtype), return forward<T>(c, tensor(c, 0), nullptr, tensor(c, 1),
                                                           tensor(c, 2), real(c, 3), Identity()))
  return PLAIT_OK;
}

// native_batch_norm_activation(input, weight, bias, eps, activation, its numbers)
plait_status native_batch_norm_activation(plait_call *c) {
  return with_activation(c, 4, [&](const auto &activation) -> plait_status {
    PLAIT_FLOATING(kind(result(c)->dtype), return forward<T>(c, tensor(c, 0), nullptr, tensor(c, 1),
                                                             tensor(c, 2), real(c, 3), activation))
    return PLAIT_OK;
  });
}

// native_batch_norm_add_activation(input, residual, weight, bias, eps, activation, its numbers)
plait_status native_batch_norm_add_activation(plait_call *c) {
  return with_activation(c, 5, [&](const auto &activation) -> plait_status {
    PLAIT_FLOATING(kind(result(c)->dtype),
                   return forward<T>(c, tensor(c, 0), tensor(c, 1), tensor(c, 2), tensor(c, 3),
                                     real(c, 4), activation))
    return PLAIT_OK;
  });
}

// batch_norm_backward(grad, input, mean, var, weight, eps)
plait_status batch_norm_backward(plait_call *c) {
  const Inputs in = {tensor(c, 0), nullptr,      tensor(c, 1), tensor(c, 2),
                     tensor(c, 3), tensor(c, 4), nullptr,      real(c, 5)};
  PLAIT_FLOATING(kind(result(c)->dtype), return backward<T>(c, in, Identity()))
  return PLAIT_OK;
}

// batch_norm_activation_backward(grad, input, mean, var, weight, bias, eps, activation, its
// numbers)
plait_status batch_norm_activation_backward(plait_call *c) {
  const Inputs in = {tensor(c, 0), nullptr,      tensor(c, 1), tensor(c, 2),
                     tensor(c, 3), tensor(c, 4), tensor(c, 5), real(c, 6)};
  return with_activation(c, 7, [&](const auto &activation) -> plait_status {
    PLAIT_FLOATING(kind(result(c)->dtype), return backward<T>(c, in, activation))
    return PLAIT_OK;
  });
}

// batch_norm_add_activation_backward(grad, output, input, mean, var, weight, eps, activation, its
// numbers)
plait_status batch_norm_add_activation_backward(plait_call *c) {
  const Inputs in = {tensor(c, 0), tensor(c, 1), tensor(c, 2), tensor(c, 3),
                     tensor(c, 4), tensor(c, 5), nullptr,      real(c, 6)};
  return with_activation(c, 7, [&](const auto &activation) -> plait_status {
    if constexpr (std::decay_t<decltype(activation)>::by_result) {
      PLAIT_FLOATING(kind(result(c)->dtype), return backward<T>(c, in, activation))
      return PLAIT_OK;
    } else {
      return PLAIT_DECLINE;
    }
  });
}

PLAIT_KERNEL("native_batch_norm", native_batch_norm);
PLAIT_KERNEL("native_batch_norm_activation", native_batch_norm_activation);
PLAIT_KERNEL("native_batch_norm_add_activation", native_batch_norm_add_activation);
PLAIT_KERNEL("batch_norm_backward", batch_norm_backward);
PLAIT_KERNEL("batch_norm_activation_backward", batch_norm_activation_backward);
PLAIT_KERNEL("batch_norm_add_activation_backward", batch_norm_add_activation_backward);

}  // namespace
}  // namespace plait::core
