// Batch normalisation with the batch's own statistics, what follows it in the same pass (a sum with
// another tensor, an activation), and the derivatives: channel by channel, so that the second
// reading finds a channel in a cache.
#include "normalization/batch_norm.h"

#include <type_traits>

#include "kernel/dense.h"
#include "kernel/half.h"
#include "kernel/integers.h"
#include "kernel/transpose.h"

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

// y = activation(normalised x + residual); `residual` may be NULL.
template <class T, class A>
void apply(const Affine<T> f, const A activation, const T *x, const T *residual, T *y, int64_t n) {
  if (residual) {
#pragma GCC ivdep
    for (int64_t j = 0; j < n; j++) y[j] = activation(f(x[j]) + residual[j]);
  } else {
#pragma GCC ivdep
    for (int64_t j = 0; j < n; j++) y[j] = activation(f(x[j]));
  }
}

// Channels of short runs, as rows of numbers have: some of them are transposed at a time, so that
// each lies in one run.
class Group {
 public:
  Channels one;  // a channel of a copy
  int64_t channels;

  explicit Group(const Channels &s) : one(s), all_(s) {
    one.n = one.channels = 1;
    one.run = s.count();
    channels = least(s.channels, ceil_div(16, most(s.run, 1)));
  }
  static bool serves(const Channels &s) { return s.run < 8 && s.n > 1 && s.channels > 1; }
  int64_t size() const { return channels * one.run; }  // elements of a copy
  int64_t grain() const { return kSerial / 2 / (size() + 1) + 1; }
  int64_t groups() const { return ceil_div(all_.channels, channels); }
  // Calls f(channel, where it begins in copies) for the channels of group i.
  template <class F>
  void each(int64_t i, F &&f) const {
    for (int64_t k = 0; k < width(i); k++) f(i * channels + k, k * one.run);
  }
  template <class T>
  void copy(T *to, const T *from, int64_t i) const {
    transpose_block(reinterpret_cast<char *>(to), all_.n,
                    reinterpret_cast<const char *>(from + first(i)), all_.step(), all_.n,
                    width(i) * all_.run, sizeof(T));
  }
  template <class T>
  void copy_back(T *to, const T *from, int64_t i) const {
    transpose_block(reinterpret_cast<char *>(to + first(i)), all_.step(),
                    reinterpret_cast<const char *>(from), all_.n, width(i) * all_.run, all_.n,
                    sizeof(T));
  }

 private:
  int64_t width(int64_t i) const { return least(channels, all_.channels - i * channels); }
  int64_t first(int64_t i) const { return i * channels * all_.run; }
  const Channels all_;
};

// (input, ..., eps, ...) -> (result, mean, biased variance)
template <class T, class A>
plait_status forward(const plait_call *c, const DLTensor *in, const DLTensor *other,
                     const DLTensor *weight, const DLTensor *bias, double eps,
                     const A &activation) {
  const Channels s(in);
  Dense<T> input, residual;
  PLAIT_TRY(input.take(c, in));
  if (other) PLAIT_TRY(residual.take(c, other));
  const T *x = input, *r = other ? static_cast<const T *>(residual) : nullptr;
  T *y = data<T>(result(c)), *mean = data<T>(result(c, 1)), *var = data<T>(result(c, 2));
  const auto channel = [&](const Channels &v, int64_t k, const T *from, const T *more, T *to) {
    const Moments m = channel_moments(v, from);
    mean[k] = T(v.count() ? m.mean : __builtin_nan(""));
    var[k] = T(m.squares / double(v.count()));
    const Affine<T> f = affine(weight, bias, k, mean[k], double(var[k]), eps);
    each_segment<true>(
        v,
        [&](int64_t at, int64_t n) {
          apply(f, activation, from + at, more ? more + at : nullptr, to + at, n);
        },
        [&](int64_t at) {
          if (more) fetch_run(v, more + at);
        });
  };
  if (Group::serves(s)) {
    const Group group(s);
    return parallel_with_memory<T>(c, group.groups(), group.grain(), (r ? 2 : 1) * group.size(),
                                   [&](int64_t begin, int64_t end, T *own) {
                                     T *more = r ? own + group.size() : nullptr;
                                     for (int64_t i = begin; i < end; i++) {
                                       group.copy(own, x, i);
                                       if (r) group.copy(more, r, i);
                                       group.each(i, [&](int64_t k, int64_t at) {
                                         channel(group.one, k, own + at, r ? more + at : nullptr,
                                                 own + at);
                                       });
                                       group.copy_back(y, own, i);
                                     }
                                   });
  }
  parallel_ranges(c, s.channels, s.grain(), [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; k++) {
      const int64_t first = k * s.run;
      channel(s, k, x + first, r ? r + first : nullptr, y + first);
    }
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

  // Writes the input's gradient of the channel that begins at `first`; returns the sums.
  GradientSums<T> channel(int64_t first, const Affine<T> &f, double r) const {
    const GradientSums<T> sum = sums(first, f);
    const double count = double(s_.count());
    const T base = T(sum.grad / count), slope = T(sum.product * r * r / count);
    each_segment<true>(
        s_,
        [&](int64_t at, int64_t n) {
          at += first;
          T room[kSegment];
          centre(f, kept() ? kept() + at : masked(at, n, f, room), x_ + at, base, slope, gx_ + at,
                 n);
        },
        [](int64_t) {});
    return sum;
  }

 private:
  static constexpr bool plain = std::is_same<A, Identity>::value;

  // Where the first reading leaves the gradient of what the activation saw for the second one, or
  // NULL: a derivative that takes long is not computed twice.
  T *kept() const { return gr_ ? gr_ : A::by_result ? nullptr : gx_; }

  // The gradient of what the activation saw. (Factors come by value, so that writing `to` changes
  // none.)
  static void differentiate(const A activation, const Affine<T> f, const T *g, const T *x,
                            const T *seen, T *to, int64_t n) {
    if (seen) {
#pragma GCC ivdep
      for (int64_t j = 0; j < n; j++) to[j] = activation.derivative(g[j], seen[j]);
    } else {
#pragma GCC ivdep
      for (int64_t j = 0; j < n; j++) to[j] = activation.derivative(g[j], f(x[j]));
    }
  }
  static void centre(const Affine<T> f, const T *m, const T *x, T base, T slope, T *gx, int64_t n) {
#pragma GCC ivdep
    for (int64_t j = 0; j < n; j++) gx[j] = f.scale * (m[j] - base - (x[j] - f.mean) * slope);
  }

  const T *masked(int64_t at, int64_t n, const Affine<T> &f, T *room) const {
    if (plain) return g_ + at;
    differentiate(activation_, f, g_ + at, x_ + at, seen_ ? seen_ + at : nullptr, room, n);
    return room;
  }

  // The first reading, which writes the residual's gradient.
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
  const T *g = grad, *x = input, *made = in.seen ? static_cast<const T *>(seen) : nullptr;
  const auto channel = [&](const Derivative<T, A> &d, int64_t k, int64_t first) {
    const double var = double(factor(in.var, k, T(1)));
    const Affine<T> f = affine(in.weight, in.bias, k, factor(in.mean, k, T(0)), var, in.eps);
    const double r = 1 / __builtin_sqrt(var + in.eps);
    const GradientSums<T> sum = d.channel(first, f, r);
    gw[k] = T(sum.product * r);
    gb[k] = T(sum.grad);
  };
  if (Group::serves(s)) {
    const Group group(s);
    return parallel_with_memory<T>(
        c, group.groups(), group.grain(), (made ? 3 : 2) * group.size(),
        [&](int64_t begin, int64_t end, T *own) {
          T *more = own + group.size(), *last = made ? more + group.size() : nullptr;
          // gradients take the place of what they are computed from
          const Derivative<T, A> d(group.one, activation, own, more, last, own, last);
          for (int64_t i = begin; i < end; i++) {
            group.copy(own, g, i);
            group.copy(more, x, i);
            if (made) group.copy(last, made, i);
            group.each(i, [&](int64_t k, int64_t at) { channel(d, k, at); });
            group.copy_back(gx, own, i);
            if (made) group.copy_back(g_residual, last, i);
          }
        });
  }
  const Derivative<T, A> d(s, activation, g, x, made, gx, g_residual);
  parallel_ranges(c, s.channels, s.grain(), [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; k++) channel(d, k, k * s.run);
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

// batch_norm_add_activation_backward(grad, made, input, mean, var, weight, eps, activation, its
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
