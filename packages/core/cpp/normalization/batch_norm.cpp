// Batch normalisation with the batch's own statistics, and its derivative: channel by channel.
#include "kernel/dense.h"
#include "reduction/moments.h"

namespace plait::core {
namespace {

// elements that are summed in lanes of T before the sums go to float64
constexpr int64_t kBlockOf = 4096;

// (n, channels, run): each channel is n runs of contiguous elements.
struct Channels {
  int64_t n, channels, run;
  explicit Channels(const DLTensor *t) : n(t->shape[0]), channels(t->shape[1]), run(1) {
    for (int d = 2; d < t->ndim; d++) run *= t->shape[d];
  }
  int64_t count() const { return n * run; }
  int64_t grain() const { return kSerial / 2 / (count() + 1) + 1; }
  int64_t step() const { return channels * run; }
};

template <class T>
T factor(const DLTensor *t, int64_t channel, T absent) {
  return t ? data<T>(t)[channel * t->strides[0]] : absent;
}

template <class T>
Moments channel_moments(const Channels &s, const T *x) {
  if (s.run >= 16) {
    Moments all{0, 0, 0};
    for (int64_t i = 0; i < s.n; i++) all.join(moments_of_run(x + i * s.step(), s.run));
    return all;
  }
  Moments all{0, 0, 0};  // short runs are copied side by side first
  T side[1024];
  int64_t filled = 0;
  for (int64_t i = 0; i < s.n; i++) {
    for (int64_t j = 0; j < s.run; j++) side[filled++] = x[i * s.step() + j];
    if (filled + s.run > 1024 || i + 1 == s.n) {
      all.join(moments_of(side, filled));
      filled = 0;
    }
  }
  return all;
}

// native_batch_norm(input, weight, bias, eps) -> (result, mean, biased variance)
template <class T>
plait_status forward(const plait_call *c, const DLTensor *in) {
  const Channels s(in);
  const double eps = real(c, 3);
  Dense<T> input;
  PLAIT_TRY(input.take(c, in));
  const T *x = input;
  T *y = data<T>(result(c)), *mean = data<T>(result(c, 1)), *var = data<T>(result(c, 2));
  parallel_ranges(c, s.channels, s.grain(), [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; k++) {
      const Moments m = channel_moments(s, x + k * s.run);
      const double variance = m.squares / double(s.count());
      mean[k] = T(s.count() ? m.mean : __builtin_nan(""));
      var[k] = T(variance);
      const T scale = T(1 / __builtin_sqrt(variance + eps)) * factor(tensor(c, 1), k, T(1));
      const T own = mean[k], shift = factor(tensor(c, 2), k, T(0));
      for (int64_t i = 0; i < s.n; i++) {
        const T *from = x + i * s.step() + k * s.run;
        T *to = y + i * s.step() + k * s.run;
#pragma GCC ivdep
        for (int64_t j = 0; j < s.run; j++) to[j] = (from[j] - own) * scale + shift;
      }
    }
  });
  return PLAIT_OK;
}

struct Sums {
  double grad = 0, product = 0;  // the sums of g and of g (x - mean)
};

template <class T>
void add_run(const T *g, const T *x, T mean, int64_t n, Sums *to) {
  constexpr int64_t k = kLanes<T>;
  while (n > 0) {
    const int64_t m = n < kBlockOf ? n : kBlockOf;
    Vec<T> a = {}, b = {}, d = {}, e = {};
    int64_t i = 0;
    for (; i + 2 * k <= m; i += 2 * k) {
      const Vec<T> g0 = load(g + i), g1 = load(g + i + k);
      a += g0;
      b += g1;
      d += g0 * (load(x + i) - mean);
      e += g1 * (load(x + i + k) - mean);
    }
    to->grad += double(sum_of<T>(a + b));
    to->product += double(sum_of<T>(d + e));
    for (; i < m; i++) {
      to->grad += double(g[i]);
      to->product += double(g[i] * (x[i] - mean));
    }
    g += m;
    x += m;
    n -= m;
  }
}

// batch_norm_backward(grad, input, mean, var, weight, eps) -> by input, weight, bias
template <class T>
plait_status backward(const plait_call *c, const DLTensor *in) {
  const Channels s(in);
  const double eps = real(c, 5);
  Dense<T> grad, input;
  PLAIT_TRY(grad.take(c, tensor(c, 0)));
  PLAIT_TRY(input.take(c, in));
  const T *g = grad, *x = input;
  T *gx = data<T>(result(c)), *gw = data<T>(result(c, 1)), *gb = data<T>(result(c, 2));
  parallel_ranges(c, s.channels, s.grain(), [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; k++) {
      const T mean = factor(tensor(c, 2), k, T(0)), var = factor(tensor(c, 3), k, T(1));
      const double r = 1 / __builtin_sqrt(double(var) + eps);
      Sums sum;
      for (int64_t i = 0; i < s.n; i++) {
        const int64_t at = i * s.step() + k * s.run;
        add_run(g + at, x + at, mean, s.run, &sum);
      }
      gw[k] = T(sum.product * r);
      gb[k] = T(sum.grad);
      const double count = double(s.count());
      const T scale = T(r) * factor(tensor(c, 4), k, T(1));
      const T base = T(sum.grad / count), slope = T(sum.product * r * r / count);
      for (int64_t i = 0; i < s.n; i++) {
        const int64_t at = i * s.step() + k * s.run;
#pragma GCC ivdep
        for (int64_t j = at; j < at + s.run; j++)
          gx[j] = scale * (g[j] - base - (x[j] - mean) * slope);
      }
    }
  });
  return PLAIT_OK;
}

plait_status native_batch_norm(plait_call *c) {
  PLAIT_FLOATING(kind(result(c)->dtype), return forward<T>(c, tensor(c, 0)))
  return PLAIT_OK;
}
plait_status batch_norm_backward(plait_call *c) {
  PLAIT_FLOATING(kind(result(c)->dtype), return backward<T>(c, tensor(c, 1)))
  return PLAIT_OK;
}
PLAIT_KERNEL("native_batch_norm", native_batch_norm);
PLAIT_KERNEL("batch_norm_backward", batch_norm_backward);

}  // namespace
}  // namespace plait::core
