// Variance, standard deviation and mean along any dimensions: var, std, var_mean, std_mean. The
// variance of complex numbers is the sum of those of their parts.
#include "block/moments.h"
#if PLAIT_HOST
#include "host/reduce.h"
#endif

namespace plait::cuda {

namespace variance_mode {
enum { VARIANCE, DEVIATION };
}

#if PLAIT_KERNELS
// `number`: the correction. The results are variances (or their roots) and maybe means.
template <class E>
struct Variance : ElementMoments<E> {
  using typename ElementMoments<E>::T;
  using typename ElementMoments<E>::Value;
  using ElementMoments<E>::ElementMoments;
  PLAIT_DEVICE void finish(Thread &t, const ReduceArgs &a, int64_t i, const Value &value) const {
    const double left = double(a.total) - a.number;
    const double v = value.squares / (left > 0 ? left : 0);
    const double mean = a.total ? value.mean : double(scalar::math::kNan);
    t.global<E>(a.out).store(i, narrow<E>(T(a.mode == variance_mode::DEVIATION ? ::sqrt(v) : v)));
    if (a.second) t.global<E>(a.second).store(i, narrow<E>(T(mean)));
  }
};

struct ComplexMoments {
  double count, re, im, squares;
};
template <class E>
struct ComplexVariance : Elements<E> {
  using Value = ComplexMoments;
  using R = typename scalar::math::RealOf<E>::type;
  using Elements<E>::Elements;
  PLAIT_DEVICE Value start() const { return {0, 0, 0, 0}; }
  static PLAIT_DEVICE Value both(const Moments &re, const Moments &im) {
    return {re.count, re.mean, im.mean, re.squares + im.squares};
  }
  PLAIT_DEVICE Value step(const Value &a, const Value &b) const {
    return both(join_moments({a.count, a.re, a.squares}, {b.count, b.re, b.squares}),
                join_moments({a.count, a.im, 0}, {b.count, b.im, 0}));
  }
  template <int N, int width>
  PLAIT_DEVICE void fold(Value &value, const E *x, int64_t, int64_t) const {
    R re[N], im[N];
#pragma unroll
    for (int k = 0; k < N; k++) re[k] = x[k].re, im[k] = x[k].im;
    value = step(value, both(moments_of<N>(re), moments_of<N>(im)));
  }
  PLAIT_DEVICE void finish(Thread &t, const ReduceArgs &a, int64_t i, const Value &value) const {
    const double left = double(a.total) - a.number;
    const double v = value.squares / (left > 0 ? left : 0);
    const double nan = double(scalar::math::kNan);
    t.global<R>(a.out).store(i, R(a.mode == variance_mode::DEVIATION ? ::sqrt(v) : v));
    if (a.second)
      t.global<E>(a.second).store(i, a.total ? E(R(value.re), R(value.im)) : E(R(nan), R(nan)));
  }
};

template <class T>
PLAIT_DEVICE void reduce_variance(Block &t, const ReduceArgs &a) {
  if constexpr (scalar::math::is_complex<T>)
    reduce<ComplexVariance<T>>(t, a);
  else
    reduce<Variance<T>>(t, a);
}
#endif
PLAIT_DEVICE_KERNEL(reduce_variance, ReduceArgs, 256, INEXACT);

#if PLAIT_HOST
namespace {

// (self, dim, *, correction, keepdim)
plait_status variance(const plait_call *c, const DLTensor *means, int mode) {
  const DLTensor *in = tensor(c, 0);
  ReduceArgs a{};
  a.out = result(c)->data, a.second = means ? means->data : nullptr;
  a.number = real(c, 2, 1), a.mode = mode;
  return launch_reduction(c, reduce_variance_kernel, in, dims_mask(c, 1, in->ndim), a);
}
plait_status var(plait_call *c) { return variance(c, nullptr, variance_mode::VARIANCE); }
plait_status std_(plait_call *c) { return variance(c, nullptr, variance_mode::DEVIATION); }
plait_status var_mean(plait_call *c) { return variance(c, result(c, 1), variance_mode::VARIANCE); }
plait_status std_mean(plait_call *c) { return variance(c, result(c, 1), variance_mode::DEVIATION); }

PLAIT_KERNEL("var", var);
PLAIT_KERNEL("std", std_);
PLAIT_KERNEL("var_mean", var_mean);
PLAIT_KERNEL("std_mean", std_mean);

}  // namespace
#endif
}  // namespace plait::cuda
