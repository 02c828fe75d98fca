// Distributions by rejection, each element from a stream of its own: Poisson, binomial, gamma; and
// draws from a table of weights.
#include "block/philox.h"
#include "block/scan.h"
#include "host/walk.h"
#include "random/rejection.h"

namespace plait::cuda {
namespace {

enum Distribution : int32_t { kPoisson, kBinomial, kGamma };

struct SampleArgs {
  void *to;
  const void *first, *second;  // parameters; second may be NULL
  int64_t n;
  RandomStream stream;
  int32_t distribution;
  Walk<3> walk;  // of the result and of the parameters, in elements
};
struct WeightArgs {
  const void *weights;
  double *sums;  // or times, for draws without replacement
  int64_t *to;
  int64_t rows, n, count, row_step, step;  // of weights, in elements
  int32_t again;
  RandomStream stream;
  Fault fault;
};

#if PLAIT_KERNELS
constexpr double kInfinity = scalar::math::kInf;
constexpr int kThreads = 256;

template <class T>
PLAIT_DEVICE void sample_elements(Thread &t, const SampleArgs &a) {
  const auto to = t.global<T>(a.to);
  const auto first = t.global<const T>(a.first);
  const auto second = t.global<const T>(a.second ? a.second : a.first);
  const RandomStream s = stream_of_run(t, a.stream);
  for (int64_t i = t.index(); i < a.n; i += t.stride()) {
    int64_t offset[3];
    a.walk.seek(i, offset);
    Draws d(s.seed, s.offset + uint64_t(i));
    const double x = double(widen(first.load(offset[1])));
    double value;
    if (a.distribution == kPoisson)
      value = rejection::poisson_of(x, d);
    else if (a.distribution == kGamma)
      value = rejection::gamma_of(x, d);
    else
      value = rejection::binomial_any(x, double(widen(second.load(offset[2]))), d);
    to.store(offset[0], narrow<T>(Compute<T>(value)));
  }
}

// With replacement: the sums of the weights of a row, by one block.
template <class T>
PLAIT_DEVICE void sum_weights(Block &t, const WeightArgs &a) {
  const auto room = t.shared<double>(kThreads / kWarp);
  const auto count_room = t.shared<uint32_t>(kThreads / kWarp);
  const auto weights = t.global<const T>(a.weights);
  const auto sums = t.global<double>(a.sums);
  const RandomStream s = stream_of_run(t, a.stream);
  for (int64_t row = t.block(); row < a.rows; row += t.blocks()) {
    double before = 0, all;
    uint32_t possible = 0;
    for (int64_t base = 0; base < a.n; base += kThreads) {
      const int64_t i = base + t.thread();
      double w = i < a.n ? double(weights.load(row * a.row_step + i * a.step)) : 0;
      if (!(w >= 0 && w < kInfinity)) {
        t.fail(a.fault, kBoundsFault, w, 0, 1.7976931348623157e308);
        w = 0;
      }
      possible += w > 0;
      const double sum = inclusive_sum(t, room, w, &all);
      if (i < a.n && a.again) sums.store(row * a.n + i, before + sum);
      // Without replacement: the order in which exponential clocks with these rates ring.
      if (i < a.n && !a.again)
        sums.store(row * a.n + i,
                   w > 0 ? -log(uniform_draw(s.seed, s.offset + uint64_t(row), i)) / w : kInfinity);
      before += all;
    }
    uint32_t choices;
    exclusive_sum(t, count_room, possible, &choices);
    const int64_t needed = a.again ? 1 : a.count;
    if (t.thread() == 0 && int64_t(choices) < needed)
      t.fail(a.fault, kBoundsFault, double(choices), double(needed), double(a.n));
  }
}

// With replacement: where a uniform number falls among the sums.
template <class T>
PLAIT_DEVICE void draw_again(Thread &t, const WeightArgs &a) {
  const auto sums = t.global<const double>(a.sums);
  const auto weights = t.global<const T>(a.weights);
  const RandomStream s = stream_of_run(t, a.stream);
  for (int64_t i = t.index(); i < a.rows * a.count; i += t.stride()) {
    const int64_t row = i / a.count, first = row * a.n;
    const double total = sums.load(first + a.n - 1);
    const double u = uniform_draw(s.seed, s.offset + uint64_t(row), i - row * a.count) * total;
    int64_t low = 0, high = a.n;  // the first sum above u
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (sums.load(first + middle) > u)
        high = middle;
      else
        low = middle + 1;
    }
    // where rounding matters, the category before that can be drawn
    low = low < a.n ? low : a.n - 1;
    while (low > 0 && !(weights.load(row * a.row_step + low * a.step) > 0)) low--;
    t.global<int64_t>(a.to).store(i, low);
  }
}
#endif

#define PLAIT_EACH_DOUBLE(X, ...) X(f64, double, __VA_ARGS__)
PLAIT_DEVICE_KERNEL(sample_elements, SampleArgs, 256, FLOATING);
PLAIT_DEVICE_KERNEL(sum_weights, WeightArgs, 256, DOUBLE);
PLAIT_DEVICE_KERNEL(draw_again, WeightArgs, 256, DOUBLE);

}  // namespace
}  // namespace plait::cuda

#if PLAIT_HOST
#include "host/random.h"
#include "host/sort.h"

namespace plait::cuda {
namespace {

plait_status sample(plait_call *c, Distribution distribution, bool has_second) {
  const DLTensor *out = result(c);
  Operand first, second;
  SampleArgs a{};
  a.n = numel(out), a.distribution = distribution;
  PLAIT_TRY(reserve_stream(c, a.n, &a.stream));
  if (a.n == 0) return PLAIT_OK;
  PLAIT_TRY(first.take(c, tensor(c, 0)));
  Plan p;
  p.add(out, 1);
  p.add(first.tensor(), 1);
  if (has_second) {
    PLAIT_TRY(second.take(c, tensor(c, 1)));
    p.add(second.tensor(), 1);
    a.second = second.data();
  } else {
    p.add_constant(nullptr);
  }
  p.finish(false);
  a.to = out->data, a.first = first.data();
  if (!make_walk(p, &a.walk)) return too_many_dimensions(c);
  return launch(c, sample_elements_kernel, kind(out->dtype), a, blocks_for(c, a.n, 256), 256);
}
plait_status poisson(plait_call *c) { return sample(c, kPoisson, false); }
plait_status binomial_draw(plait_call *c) { return sample(c, kBinomial, true); }
plait_status standard_gamma(plait_call *c) { return sample(c, kGamma, false); }
PLAIT_KERNEL("poisson", poisson);
PLAIT_KERNEL("binomial_draw", binomial_draw);
PLAIT_KERNEL("_standard_gamma", standard_gamma);

plait_status multinomial(plait_call *c) {  // multinomial(self, num_samples, replacement, generator)
  const DLTensor *out = result(c);
  WeightArgs a{};
  a.count = out->shape[out->ndim - 1], a.again = integer(c, 2) != 0;
  if (a.count == 0) return PLAIT_OK;
  Operand weights;
  PLAIT_TRY(weights.take_as(c, tensor(c, 0), DLDataType{kDLFloat, 64, 1}));
  const DLTensor *self = weights.tensor();
  a.n = self->shape[self->ndim - 1], a.rows = self->ndim == 2 ? self->shape[0] : 1;
  PLAIT_TRY(reserve_stream(c, a.rows, &a.stream));
  if (a.rows == 0 || a.n == 0) return PLAIT_OK;
  DeviceWorkspace sums, times;
  PLAIT_TRY(sums.take(c, a.rows * a.n * 8));
  a.weights = self->data, a.sums = sums.data<double>(), a.to = data<int64_t>(out);
  a.row_step = a.n, a.step = 1, a.fault = fault_of(c, 0);
  PLAIT_TRY(
      launch(c, sum_weights_kernel, F64, a, a.rows < 65536 ? a.rows : 65536, 256, 8 * (8 + 4)));
  if (a.again)
    return launch(c, draw_again_kernel, F64, a, blocks_for(c, a.rows * a.count, 256), 256);
  PLAIT_TRY(times.take(c, a.rows * a.count * 8));
  return sort_rows(c, F64, a.sums, a.rows, a.n, a.count, times.data(), a.to);
}
PLAIT_KERNEL("multinomial", multinomial);

}  // namespace
}  // namespace plait::cuda
#endif
