// y_i = f_i y_(i-1) + t_i along a dimension, or from its end with the same links, and filters,
// whose elements depend on several before them. float32 is carried in float64.
#include "block/line_scan.h"
#if PLAIT_HOST
#include "host/copy.h"
#include "host/line_scan.h"
#endif

namespace plait::cuda {

struct FilterArgs {
  const void *x, *factors;  // (lines, n) and (channels, order)
  void *y;
  void *wide;  // the results in float64, those of all lines side by side
  int64_t lines, n, channels, order;
};

#if PLAIT_KERNELS
// Links y -> factor y + term, one after the other. A link's factors may overflow where no result
// does, so what is 0 stays 0.
template <class W>
struct Link {
  W factor, term;
};
template <class E>
struct Recurrence {
  using Element = E;
  using W = std::conditional_t<scalar::math::is_complex<E>, Complex128, double>;
  using Value = Link<W>;
  static constexpr int kWidth = int(16 / sizeof(E));
  Global<const E> factors, terms;
  Global<E> y;
  int64_t apart;  // from a factor to that of the link before it, in reverse
  PLAIT_DEVICE Recurrence(Thread &t, const ScanArgs &a)
      : factors(t.global<const E>(a.x)),
        terms(t.global<const E>(a.other)),
        y(t.global<E>(a.y)),
        apart(a.is_reverse ? a.inner : 0) {}
  PLAIT_DEVICE Value start() const { return {W(1), W(0)}; }
  PLAIT_DEVICE Value step(const Value &a, const Value &b) const {
    const bool is_zero = a.term == W(0);
    return {a.factor * b.factor, is_zero ? b.term : b.factor * a.term + b.term};
  }
  // nothing is before the first element, whatever its factor is
  PLAIT_DEVICE Value load(int64_t at, int64_t position) const {
    return {position ? W(widen(factors.load(at + apart))) : W(0), W(widen(terms.load(at)))};
  }
  PLAIT_DEVICE void load_vector(int64_t at, int64_t position, Value *to) const {
    const auto f = factors.template load_vector<kWidth>(at);
    const auto v = terms.template load_vector<kWidth>(at);
#pragma unroll
    for (int e = 0; e < kWidth; e++)
      to[e] = {position + e ? W(widen(f.at[e])) : W(0), W(widen(v.at[e]))};
  }
  static PLAIT_DEVICE E element(const Value &v) {
    if constexpr (scalar::math::is_complex<E>)
      return E(v.term);
    else
      return narrow<E>(Compute<E>(v.term));
  }
  PLAIT_DEVICE void store(int64_t at, const Value &v) const { y.store(at, element(v)); }
  PLAIT_DEVICE void store_vector(int64_t at, const Value *from) const {
    Vector<E, kWidth> v;
#pragma unroll
    for (int e = 0; e < kWidth; e++) v.at[e] = element(from[e]);
    y.template store_vector<kWidth>(at, v);
  }
};
template <class T>
PLAIT_DEVICE void scan_recurrence(Block &t, const ScanArgs &a) {
  scan_lines<Recurrence<T>>(t, a);
}

// A thread has a line; the elements before the first one are 0.
template <class E>
PLAIT_DEVICE void filter_lines(Thread &t, const FilterArgs &a) {
  const auto x = t.global<const E>(a.x), factors = t.global<const E>(a.factors);
  const auto y = t.global<E>(a.y);
  const auto wide = t.global<double>(a.wide);
  for (int64_t line = t.index(); line < a.lines; line += t.stride()) {
    const int64_t own = line % a.channels * a.order;
    for (int64_t i = 0; i < a.n; i++) {
      double sum = double(widen(x.load(line * a.n + i)));
      for (int64_t k = 0; k < a.order && k < i; k++)
        sum -= double(widen(factors.load(own + k))) * wide.load((i - 1 - k) * a.lines + line);
      wide.store(i * a.lines + line, sum);
      y.store(line * a.n + i, narrow<E>(Compute<E>(sum)));
    }
  }
}
#endif
PLAIT_DEVICE_KERNEL(scan_recurrence, ScanArgs, 256, INEXACT);
PLAIT_DEVICE_KERNEL(filter_lines, FilterArgs, 128, FLOATING);

#if PLAIT_HOST
namespace {

// (factors, terms, dim, reverse)
plait_status linear_recurrence(plait_call *c) {
  const DLTensor *out = result(c);
  Operand factors, terms;
  PLAIT_TRY(factors.take_dense(c, tensor(c, 0)));
  PLAIT_TRY(terms.take_dense(c, tensor(c, 1)));
  ScanArgs a{};
  a.x = factors.data(), a.other = terms.data(), a.y = out->data;
  a.is_reverse = integer(c, 3) != 0;
  return launch_scan(c, scan_recurrence_kernel, kind(out->dtype), out, integer(c, 2), a);
}

// all_pole_filter(self, factors)
plait_status all_pole_filter(plait_call *c) {
  const DLTensor *in = tensor(c, 0), *by = tensor(c, 1);
  if (numel(in) == 0) return PLAIT_OK;
  Operand x, factors;
  DeviceWorkspace wide;
  PLAIT_TRY(x.take_dense(c, in));
  PLAIT_TRY(factors.take_dense(c, by));
  PLAIT_TRY(wide.take(c, numel(in) * int64_t(sizeof(double))));
  const FilterArgs a{
      x.data(),     factors.data(), result(c)->data, wide.data(), in->shape[0] * in->shape[1],
      in->shape[2], in->shape[1],   by->shape[1]};
  return launch(c, filter_lines_kernel, kind(in->dtype), a, blocks_for(c, a.lines, 128), 128);
}

PLAIT_KERNEL("linear_recurrence", linear_recurrence);
PLAIT_KERNEL("all_pole_filter", all_pole_filter);

}  // namespace
#endif
}  // namespace plait::cuda
