// Batch normalisation with the batch's own statistics, what follows it in the same pass (a sum with
// another tensor, an activation), and the derivatives.
//
// Operands are dense, (n, channels, run). The sums of a channel are a reduction over n and run; its
// last step writes the factors of the channel for the kernel that makes the elements.
#include <initializer_list>

#include "block/moments.h"
#include "block/reduce.h"
#include "pointwise/activations.h"
#include "pointwise/arithmetic.h"
#if PLAIT_HOST
#include "host/copy.h"
#include "host/reduce.h"
#endif

namespace plait::cuda {

namespace activation_kind {
enum { NONE, RELU, HARDTANH, LEAKY_RELU, SILU, HARDSWISH };
}
struct ActivationArgs {
  int32_t kind;
  double low, high, slope;
};

// Of sums over channels. Arrays have one element for each channel; all but those of `weight` and
// `bias` have the type of the computation.
struct ChannelArgs {
  ReduceArgs reduce;
  const void *weight, *bias, *mean, *var;  // weight and bias may be NULL
  void *mean_out, *var_out;
  void *factors;  // of channels: see Factors
  ActivationArgs activation;
  double eps;
};
struct BatchNormArgs {
  const void *x, *residual, *grad, *seen;
  void *y, *grad_residual;
  const void *factors;
  int64_t n, channels, run;  // n: all elements
  Divider by_run, by_channels;
  int32_t is_large, is_vector;
  ActivationArgs activation;
};

// Of batch_norm_move_statistics; arrays have one element for each channel.
struct StatisticsArgs {
  int64_t channels;
  void *running_mean, *running_var;
  const void *mean, *var;
  double kept, mean_share, var_share;
};

#if PLAIT_KERNELS
template <class T>
struct Activate {
  int kind;
  T low, high, slope;
  PLAIT_DEVICE explicit Activate(const ActivationArgs &a)
      : kind(a.kind), low(T(a.low)), high(T(a.high)), slope(T(a.slope)) {}
  PLAIT_DEVICE T operator()(T x) const {
    switch (kind) {
      case activation_kind::RELU: return scalar::relu(x);
      case activation_kind::HARDTANH: return scalar::hardtanh(x, low, high);
      case activation_kind::LEAKY_RELU: return scalar::leaky_relu(x, slope);
      case activation_kind::SILU: return scalar::silu(x);
      case activation_kind::HARDSWISH: return scalar::hardswish(x);
      default: return x;
    }
  }
  PLAIT_DEVICE T derivative(T g, T x) const {
    switch (kind) {
      case activation_kind::RELU: return scalar::relu_backward(g, x);
      case activation_kind::HARDTANH: return scalar::hardtanh_backward(g, x, low, high);
      case activation_kind::LEAKY_RELU: return scalar::leaky_relu_backward(g, x, slope);
      case activation_kind::SILU: return scalar::silu_backward(g, x);
      case activation_kind::HARDSWISH: return scalar::hardswish_backward(g, x);
      default: return g;
    }
  }
};

// Of one channel: normalised x = (x - mean) scale + shift, and the derivative by x, which is
// scale (g - base - (x - mean) slope).
template <class T>
struct Factors {
  T mean, scale, shift, slope, base;
  PLAIT_DEVICE T operator()(T x) const { return scalar::math::fused(x - mean, scale, shift); }
};
template <class E>
PLAIT_DEVICE Factors<Compute<E>> channel_factors(Thread &t, const ChannelArgs &a, int64_t i,
                                                 Compute<E> mean, double var) {
  using T = Compute<E>;
  T scale = T(1 / ::sqrt(var + a.eps)), shift = T(0);
  if (a.weight) scale *= widen(t.global<const E>(a.weight).load(i));
  if (a.bias) shift = widen(t.global<const E>(a.bias).load(i));
  return {mean, scale, shift, T(0), T(0)};
}

// Mean and biased variance of channels.
template <class E>
struct ChannelMoments : ElementMoments<E> {
  using typename ElementMoments<E>::T;
  using typename ElementMoments<E>::Value;
  const ChannelArgs &args;
  PLAIT_DEVICE ChannelMoments(Thread &t, const ChannelArgs &a)
      : ElementMoments<E>(t, a.reduce), args(a) {}
  PLAIT_DEVICE void finish(Thread &t, const ReduceArgs &a, int64_t i, const Value &value) const {
    const T mean = a.total ? T(value.mean) : T(scalar::math::kNan);
    const T var = T(value.squares / double(a.total));
    t.global<T>(args.mean_out).store(i, mean);
    t.global<T>(args.var_out).store(i, var);
    t.global<Factors<T>>(args.factors).store(i, channel_factors<E>(t, args, i, mean, double(var)));
  }
};

// The sums over channels of the gradient g of what the activation saw, and of g (x - mean). `data`
// is the gradient of the result, `other` the input, `third` the activation's result or NULL.
struct ChannelSums {
  double grad, product;
};
template <class E>
struct Seen {
  E grad, x, result;
};
template <class E>
struct ChannelGradients {
  using T = Compute<E>;
  using Element = Seen<E>;
  using Value = ChannelSums;
  static constexpr int kWidth = int(16 / sizeof(E));
  const ChannelArgs &args;
  Thread &t;
  Global<const E> grad, x, result;
  Activate<T> activation;
  Factors<T> factors{};
  PLAIT_DEVICE ChannelGradients(Thread &thread, const ChannelArgs &a)
      : args(a),
        t(thread),
        grad(t.global<const E>(a.reduce.data)),
        x(t.global<const E>(a.reduce.other)),
        result(t.global<const E>(a.reduce.third)),
        activation(a.activation) {}
  PLAIT_DEVICE Factors<T> factors_of(int64_t i) const {
    const T mean = t.global<const T>(args.mean).load(i);
    return channel_factors<E>(t, args, i, mean, double(t.global<const T>(args.var).load(i)));
  }
  PLAIT_DEVICE void begin(int64_t i) { factors = factors_of(i); }
  PLAIT_DEVICE Element load(int64_t at) const {
    return {grad.load(at), x.load(at), args.reduce.third ? result.load(at) : E{}};
  }
  PLAIT_DEVICE void load_vector(int64_t at, Element *to) const {
    const auto g = grad.template load_vector<kWidth>(at), v = x.template load_vector<kWidth>(at);
    Vector<E, kWidth> y{};
    if (args.reduce.third) y = result.template load_vector<kWidth>(at);
#pragma unroll
    for (int e = 0; e < kWidth; e++) to[e] = {g.at[e], v.at[e], y.at[e]};
  }
  PLAIT_DEVICE Value start() const { return {0, 0}; }
  PLAIT_DEVICE Value step(const Value &a, const Value &b) const {
    return {a.grad + b.grad, a.product + b.product};
  }
  template <int N, int width>
  PLAIT_DEVICE void fold(Value &value, const Element *from, int64_t, int64_t) const {
    T sum = T(0), product = T(0);
#pragma unroll
    for (int k = 0; k < N; k++) {
      const T v = widen(from[k].x);
      const T y = args.reduce.third ? widen(from[k].result) : factors(v);
      const T g = activation.derivative(widen(from[k].grad), y);
      sum += g;
      product = scalar::math::fused(g, v - factors.mean, product);
    }
    value.grad += double(sum);
    value.product += double(product);
  }
  PLAIT_DEVICE void finish(Thread &, const ReduceArgs &a, int64_t i, const Value &value) const {
    Factors<T> f = factors_of(i);
    const double var = double(t.global<const T>(args.var).load(i)), count = double(a.total);
    const double r = a.total ? 1 / ::sqrt(var + args.eps) : 0;  // without values var is nan
    t.global<E>(a.out).store(i, narrow<E>(T(value.product * r)));
    t.global<E>(a.second).store(i, narrow<E>(T(value.grad)));
    f.slope = T(value.product * r * r / count), f.base = T(value.grad / count);
    t.global<Factors<T>>(args.factors).store(i, f);
  }
};

// The factors of channels whose mean and variance are given.
template <class E>
PLAIT_DEVICE void batch_norm_factors(Thread &t, const ChannelArgs &a) {
  using T = Compute<E>;
  const auto mean = t.global<const T>(a.mean), var = t.global<const T>(a.var);
  const auto factors = t.global<Factors<T>>(a.factors);
  for (int64_t i = t.index(); i < a.reduce.results; i += t.stride())
    factors.store(i, channel_factors<E>(t, a, i, mean.load(i), double(var.load(i))));
}

template <class T>
PLAIT_DEVICE void batch_norm_statistics(Thread &t, const StatisticsArgs &a) {
  const auto running_mean = t.global<T>(a.running_mean), running_var = t.global<T>(a.running_var);
  const auto mean = t.global<const T>(a.mean), var = t.global<const T>(a.var);
  const T kept = T(a.kept);
  for (int64_t i = t.index(); i < a.channels; i += t.stride()) {
    const T old_mean = scalar::mul(running_mean.load(i), kept);
    const T old_var = scalar::mul(running_var.load(i), kept);
    running_mean.store(i, scalar::add(old_mean, mean.load(i), T(a.mean_share)));
    running_var.store(i, scalar::add(old_var, var.load(i), T(a.var_share)));
  }
}

template <class T>
PLAIT_DEVICE void batch_norm_moments(Block &t, const ChannelArgs &a) {
  reduce<ChannelMoments<T>>(t, a, a.reduce);
}
template <class T>
PLAIT_DEVICE void batch_norm_sums(Block &t, const ChannelArgs &a) {
  reduce<ChannelGradients<T>>(t, a, a.reduce);
}

PLAIT_DEVICE int64_t channel_of(const BatchNormArgs &a, int64_t i) {
  if (a.is_large) return i / a.run % a.channels;
  const uint32_t plane = quotient(a.by_run, uint32_t(i));
  return plane - quotient(a.by_channels, plane) * a.by_channels.divisor;
}

// Calls f(first, factors) for groups of `width` neighbouring elements of one channel, or of one.
template <class T, int width, class Wide, class One>
PLAIT_DEVICE void each_element(Thread &t, const BatchNormArgs &a, Wide wide, One one) {
  const auto factors = t.global<const Factors<T>>(a.factors);
  if (a.is_vector) {
    for (int64_t i = t.index() * width; i < a.n; i += t.stride() * width)
      wide(i, factors.load(channel_of(a, i)));
    return;
  }
  for (int64_t i = t.index(); i < a.n; i += t.stride()) one(i, factors.load(channel_of(a, i)));
}

template <class E>
PLAIT_DEVICE void batch_norm_elements(Thread &t, const BatchNormArgs &a) {
  using T = Compute<E>;
  constexpr int kWidth = int(16 / sizeof(E));
  const auto x = t.global<const E>(a.x), residual = t.global<const E>(a.residual);
  const auto y = t.global<E>(a.y);
  const Activate<T> activation(a.activation);
  each_element<T, kWidth>(
      t, a,
      [&](int64_t i, const Factors<T> &f) {
        auto v = x.template load_vector<kWidth>(i);
        Vector<E, kWidth> r{};
        if (a.residual) r = residual.template load_vector<kWidth>(i);
#pragma unroll
        for (int e = 0; e < kWidth; e++) {
          const T own = f(widen(v.at[e]));
          v.at[e] = narrow<E>(activation(a.residual ? own + widen(r.at[e]) : own));
        }
        y.template store_vector<kWidth>(i, v);
      },
      [&](int64_t i, const Factors<T> &f) {
        const T own = f(widen(x.load(i)));
        y.store(i, narrow<E>(activation(a.residual ? own + widen(residual.load(i)) : own)));
      });
}

template <class E>
PLAIT_DEVICE void batch_norm_gradients(Thread &t, const BatchNormArgs &a) {
  using T = Compute<E>;
  constexpr int kWidth = int(16 / sizeof(E));
  const auto x = t.global<const E>(a.x), grad = t.global<const E>(a.grad);
  const auto seen = t.global<const E>(a.seen);
  const auto y = t.global<E>(a.y), other = t.global<E>(a.grad_residual);
  const Activate<T> activation(a.activation);
  // of the residual, and of the input
  const auto both = [&](const Factors<T> &f, E g, E x_, E y_, E *by_residual) {
    const T v = widen(x_);
    const T own = activation.derivative(widen(g), a.seen ? widen(y_) : f(v));
    *by_residual = narrow<E>(own);
    return narrow<E>(f.scale * (own - f.base - (v - f.mean) * f.slope));
  };
  each_element<T, kWidth>(
      t, a,
      [&](int64_t i, const Factors<T> &f) {
        auto v = x.template load_vector<kWidth>(i), g = grad.template load_vector<kWidth>(i);
        Vector<E, kWidth> r{};
        if (a.seen) r = seen.template load_vector<kWidth>(i);
#pragma unroll
        for (int e = 0; e < kWidth; e++) v.at[e] = both(f, g.at[e], v.at[e], r.at[e], &r.at[e]);
        y.template store_vector<kWidth>(i, v);
        if (a.grad_residual) other.template store_vector<kWidth>(i, r);
      },
      [&](int64_t i, const Factors<T> &f) {
        E r{};
        if (a.seen) r = seen.load(i);
        y.store(i, both(f, grad.load(i), x.load(i), r, &r));
        if (a.grad_residual) other.store(i, r);
      });
}
#endif
PLAIT_DEVICE_KERNEL(batch_norm_statistics, StatisticsArgs, 256, WIDE);
PLAIT_DEVICE_KERNEL(batch_norm_moments, ChannelArgs, 256, FLOATING);
PLAIT_DEVICE_KERNEL(batch_norm_factors, ChannelArgs, 256, FLOATING);
PLAIT_DEVICE_KERNEL(batch_norm_sums, ChannelArgs, 256, FLOATING);
PLAIT_DEVICE_KERNEL(batch_norm_elements, BatchNormArgs, 256, FLOATING);
PLAIT_DEVICE_KERNEL(batch_norm_gradients, BatchNormArgs, 256, FLOATING);

#if PLAIT_HOST
namespace {

constexpr int64_t kFactorBytes = 5 * 8;

// The activation that argument `at` names; its numbers follow: min_val, max_val, negative_slope.
bool activation_of(const plait_call *c, int at, ActivationArgs *a) {
  static const char *const names[] = {"relu", "hardtanh", "leaky_relu", "silu", "hardswish"};
  for (int k = 0; k < 5; k++)
    if (text_is(c, at, names[k])) {
      *a = {k + 1, real(c, at + 1), real(c, at + 2), real(c, at + 3)};
      return true;
    }
  return false;
}

// The elements of `t`, of which several lie in one channel where vectors allow it.
BatchNormArgs elements_of(const DLTensor *t, std::initializer_list<const void *> data) {
  BatchNormArgs a{};
  a.n = numel(t), a.channels = t->shape[1], a.run = 1;
  for (int d = 2; d < t->ndim; d++) a.run *= t->shape[d];
  a.is_large = a.n >= int64_t(1) << 31;
  if (a.n) a.by_run = divider(a.run), a.by_channels = divider(a.channels);
  a.is_vector = a.run % (16 / size_of(kind(t->dtype))) == 0;
  for (const void *each : data)
    if (reinterpret_cast<uintptr_t>(each) % 16) a.is_vector = 0;
  return a;
}
plait_status launch_elements(const plait_call *c, const DeviceKernel &kernel, Kind k,
                             const BatchNormArgs &a) {
  const int64_t width = a.is_vector ? 16 / size_of(k) : 1;
  return launch(c, kernel, k, a, blocks_for(c, ceil_div(a.n, width), 256), 256);
}
// All dimensions but that of channels.
uint64_t within_channels(const DLTensor *t) { return all_dims(t->ndim) & ~uint64_t(2); }

const void *data_of(const Operand &x, const DLTensor *t) { return t ? x.tensor()->data : nullptr; }

struct Forward {
  const DLTensor *input, *residual, *weight, *bias;
  double eps;
};
// -> (result, mean, biased variance)
plait_status forward(const plait_call *c, const Forward &in, const ActivationArgs &activation) {
  const Kind k = kind(in.input->dtype);
  Operand x, residual, weight, bias;
  PLAIT_TRY(x.take_dense(c, in.input));
  if (in.residual) PLAIT_TRY(residual.take_dense(c, in.residual));
  if (in.weight) PLAIT_TRY(weight.take_dense(c, in.weight));
  if (in.bias) PLAIT_TRY(bias.take_dense(c, in.bias));
  DeviceWorkspace factors;
  PLAIT_TRY(factors.take(c, in.input->shape[1] * kFactorBytes));
  ChannelArgs sums{};
  sums.weight = data_of(weight, in.weight), sums.bias = data_of(bias, in.bias);
  sums.mean_out = result(c, 1)->data, sums.var_out = result(c, 2)->data;
  sums.factors = factors.data(), sums.eps = in.eps;
  PLAIT_TRY(launch_reduction(c, batch_norm_moments_kernel, x.tensor(), within_channels(x.tensor()),
                             sums));
  BatchNormArgs a =
      elements_of(x.tensor(), {x.tensor()->data, result(c)->data, data_of(residual, in.residual)});
  a.x = x.tensor()->data, a.residual = data_of(residual, in.residual), a.y = result(c)->data;
  a.factors = factors.data(), a.activation = activation;
  return launch_elements(c, batch_norm_elements_kernel, k, a);
}

// batch_norm_by(input, mean, var, weight, bias, eps): with a given mean and variance
plait_status batch_norm_by(plait_call *c) {
  const DLTensor *in = tensor(c, 0);
  const Kind k = kind(in->dtype);
  if (k != F32 && k != F64 && !is_half(k)) return PLAIT_DECLINE;
  const DLDataType wide = k == F64 ? in->dtype : DLDataType{kDLFloat, 32, 1};
  Operand x, mean, var, weight, bias;
  PLAIT_TRY(x.take_dense(c, in));
  PLAIT_TRY(mean.take_as(c, tensor(c, 1), wide));
  PLAIT_TRY(var.take_as(c, tensor(c, 2), wide));
  if (tensor(c, 3)) PLAIT_TRY(weight.take_as(c, tensor(c, 3), in->dtype));
  if (tensor(c, 4)) PLAIT_TRY(bias.take_as(c, tensor(c, 4), in->dtype));
  DenseResult out;
  PLAIT_TRY(out.take(c, result(c)));
  DeviceWorkspace factors;
  PLAIT_TRY(factors.take(c, in->shape[1] * kFactorBytes));
  ChannelArgs channels{};
  channels.reduce.results = in->shape[1];
  channels.mean = mean.tensor()->data, channels.var = var.tensor()->data;
  channels.weight = data_of(weight, tensor(c, 3)), channels.bias = data_of(bias, tensor(c, 4));
  channels.factors = factors.data(), channels.eps = real(c, 5);
  PLAIT_TRY(launch(c, batch_norm_factors_kernel, k, channels,
                   blocks_for(c, channels.reduce.results, 256), 256));
  BatchNormArgs a = elements_of(x.tensor(), {x.tensor()->data, out.data()});
  a.x = x.tensor()->data, a.y = out.data(), a.factors = factors.data();
  PLAIT_TRY(launch_elements(c, batch_norm_elements_kernel, k, a));
  return out.finish(c);
}

// batch_norm_move_statistics(running_mean, running_var, mean, var, momentum, var_momentum)
plait_status move_statistics(plait_call *c) {
  StatisticsArgs a{};
  void *pointers[4];
  for (int i = 0; i < 4; i++) {
    const DLTensor *t = tensor(c, i);
    const Kind k = kind(t->dtype);
    const bool is_dense = t->ndim == 1 && (t->shape[0] <= 1 || t->strides[0] == 1);
    if ((k != F32 && k != F64) || k != kind(tensor(c, 0)->dtype) || !is_dense || !is_aligned(t) ||
        t->shape[0] != tensor(c, 0)->shape[0])
      return PLAIT_DECLINE;
    pointers[i] = t->data;
  }
  a.channels = tensor(c, 0)->shape[0];
  a.running_mean = pointers[0], a.running_var = pointers[1];
  a.mean = pointers[2], a.var = pointers[3];
  a.kept = 1 - real(c, 4), a.mean_share = real(c, 4), a.var_share = real(c, 5);
  if (a.channels == 0) return PLAIT_OK;
  return launch(c, batch_norm_statistics_kernel, kind(tensor(c, 0)->dtype), a,
                blocks_for(c, a.channels, 256), 256);
}

struct Backward {
  const DLTensor *grad, *seen, *input, *mean, *var, *weight, *bias;
  double eps;
};
// -> by input, weight, bias and, if `seen` is given, by the residual
plait_status backward(const plait_call *c, const Backward &in, const ActivationArgs &activation) {
  const Kind k = kind(in.input->dtype);
  const DLDataType wide = k == F64 ? in.input->dtype : DLDataType{kDLFloat, 32, 1};
  Operand grad, seen, x, mean, var, weight, bias;
  PLAIT_TRY(grad.take_dense(c, in.grad));
  PLAIT_TRY(x.take_dense(c, in.input));
  PLAIT_TRY(mean.take_as(c, in.mean, wide));
  PLAIT_TRY(var.take_as(c, in.var, wide));
  if (in.seen) PLAIT_TRY(seen.take_dense(c, in.seen));
  if (in.weight) PLAIT_TRY(weight.take_dense(c, in.weight));
  if (in.bias) PLAIT_TRY(bias.take_dense(c, in.bias));
  DeviceWorkspace factors;
  PLAIT_TRY(factors.take(c, in.input->shape[1] * kFactorBytes));
  ChannelArgs sums{};
  sums.reduce.other = x.tensor()->data, sums.reduce.third = data_of(seen, in.seen);
  sums.reduce.out = result(c, 1)->data, sums.reduce.second = result(c, 2)->data;
  sums.weight = data_of(weight, in.weight), sums.bias = data_of(bias, in.bias);
  sums.mean = mean.tensor()->data, sums.var = var.tensor()->data;
  sums.factors = factors.data(), sums.activation = activation, sums.eps = in.eps;
  PLAIT_TRY(launch_reduction(c, batch_norm_sums_kernel, grad.tensor(),
                             within_channels(grad.tensor()), sums));
  void *by_residual = in.seen ? result(c, 3)->data : nullptr;
  BatchNormArgs a = elements_of(x.tensor(), {x.tensor()->data, grad.tensor()->data,
                                             data_of(seen, in.seen), result(c)->data, by_residual});
  a.x = x.tensor()->data, a.grad = grad.tensor()->data, a.seen = data_of(seen, in.seen);
  a.y = result(c)->data, a.grad_residual = by_residual;
  a.factors = factors.data(), a.activation = activation;
  return launch_elements(c, batch_norm_gradients_kernel, k, a);
}

// native_batch_norm(input, weight, bias, eps)
plait_status native_batch_norm(plait_call *c) {
  return forward(c, {tensor(c, 0), nullptr, tensor(c, 1), tensor(c, 2), real(c, 3)}, {});
}
// native_batch_norm_activation(input, weight, bias, eps, activation, its numbers)
plait_status native_batch_norm_activation(plait_call *c) {
  ActivationArgs a{};
  if (!activation_of(c, 4, &a)) return PLAIT_DECLINE;
  return forward(c, {tensor(c, 0), nullptr, tensor(c, 1), tensor(c, 2), real(c, 3)}, a);
}
// native_batch_norm_add_activation(input, residual, weight, bias, eps, activation, its numbers)
plait_status native_batch_norm_add_activation(plait_call *c) {
  ActivationArgs a{};
  if (!activation_of(c, 5, &a)) return PLAIT_DECLINE;
  return forward(c, {tensor(c, 0), tensor(c, 1), tensor(c, 2), tensor(c, 3), real(c, 4)}, a);
}
// batch_norm_backward(grad, input, mean, var, weight, eps)
plait_status batch_norm_backward(plait_call *c) {
  return backward(c,
                  {tensor(c, 0), nullptr, tensor(c, 1), tensor(c, 2), tensor(c, 3), tensor(c, 4),
                   nullptr, real(c, 5)},
                  {});
}
// batch_norm_activation_backward(grad, input, mean, var, weight, bias, eps, activation, its
// numbers)
plait_status batch_norm_activation_backward(plait_call *c) {
  ActivationArgs a{};
  if (!activation_of(c, 7, &a)) return PLAIT_DECLINE;
  return backward(c,
                  {tensor(c, 0), nullptr, tensor(c, 1), tensor(c, 2), tensor(c, 3), tensor(c, 4),
                   tensor(c, 5), real(c, 6)},
                  a);
}
// batch_norm_add_activation_backward(grad, output, input, mean, var, weight, eps, activation, its
// numbers): the activation's result tells its derivative
plait_status batch_norm_add_activation_backward(plait_call *c) {
  ActivationArgs a{};
  if (!activation_of(c, 7, &a) || a.kind >= activation_kind::SILU) return PLAIT_DECLINE;
  return backward(c,
                  {tensor(c, 0), tensor(c, 1), tensor(c, 2), tensor(c, 3), tensor(c, 4),
                   tensor(c, 5), nullptr, real(c, 6)},
                  a);
}

PLAIT_KERNEL("native_batch_norm", native_batch_norm);
PLAIT_KERNEL("native_batch_norm_activation", native_batch_norm_activation);
PLAIT_KERNEL("native_batch_norm_add_activation", native_batch_norm_add_activation);
PLAIT_KERNEL("batch_norm_by", batch_norm_by);
PLAIT_KERNEL("batch_norm_move_statistics", move_statistics);
PLAIT_KERNEL("batch_norm_backward", batch_norm_backward);
PLAIT_KERNEL("batch_norm_activation_backward", batch_norm_activation_backward);
PLAIT_KERNEL("batch_norm_add_activation_backward", batch_norm_add_activation_backward);

}  // namespace
#endif
}  // namespace plait::cuda
