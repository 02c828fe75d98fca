// Sums, products and counts along any dimensions: sum, mean, prod, any, all, count_nonzero.
//
// A thread adds the elements that it reads at once pairwise, in float32 for halves and float32, and
// such sums in float64. Integers of all widths are added as unsigned numbers of 64 bits.
#include "block/reduce.h"
#if PLAIT_HOST
#include "host/reduce.h"
#endif

namespace plait::cuda {

namespace count_as {
enum { COUNT, ANY, ALL };
}

#if PLAIT_KERNELS
template <class E>
struct Accumulated {  // the types of the elements' sums and of sums of those
  using type = std::conditional_t<std::is_integral_v<E>, uint64_t, Compute<E>>;
  using wide =
      std::conditional_t<std::is_integral_v<E>, uint64_t,
                         std::conditional_t<scalar::math::is_complex<E>, Complex128, double>>;
};

template <class E, bool product>
struct Arithmetic : Elements<E> {
  using T = typename Accumulated<E>::type;
  using Value = typename Accumulated<E>::wide;
  using Elements<E>::Elements;
  PLAIT_DEVICE Value start() const { return Value(product ? 1 : 0); }
  template <class N>
  PLAIT_DEVICE N step(N a, N b) const {
    if constexpr (product)
      return a * b;
    else
      return a + b;
  }
  template <int N, int width>
  PLAIT_DEVICE void fold(Value &value, const E *x, int64_t, int64_t) const {
    T some[N];
#pragma unroll
    for (int k = 0; k < N; k++) some[k] = T(widen(x[k]));
#pragma unroll
    for (int half = N / 2; half > 0; half /= 2) {
#pragma unroll
      for (int k = 0; k < half; k++) some[k] = step(some[k], some[k + half]);
    }
    value = step(value, Value(some[0]));
  }
  // `number` divides the sum
  PLAIT_DEVICE void finish(Thread &t, const ReduceArgs &a, int64_t i, Value value) const {
    if constexpr (std::is_integral_v<E>) {
      if (a.out_kind == core::I64)
        t.global<uint64_t>(a.out).store(i, value);
      else
        t.global<E>(a.out).store(i, E(value));
    } else if constexpr (scalar::math::is_complex<E>) {
      const Complex128 share(value.re / a.number, value.im / a.number);
      t.global<E>(a.out).store(i, E(product ? value : share));
    } else {
      t.global<E>(a.out).store(i, narrow<E>(T(product ? value : value / a.number)));
    }
  }
};

template <class E>
struct Count : Elements<E> {
  using Value = int64_t;
  using Elements<E>::Elements;
  PLAIT_DEVICE Value start() const { return 0; }
  PLAIT_DEVICE Value step(Value a, Value b) const { return a + b; }
  static PLAIT_DEVICE bool is_not_zero(E x) {
    const auto y = widen(x);
    if constexpr (scalar::math::is_complex<E>)
      return (y.re != 0) | (y.im != 0);
    else
      return y != Compute<E>(0);
  }
  template <int N, int width>
  PLAIT_DEVICE void fold(Value &value, const E *x, int64_t, int64_t) const {
    int n = 0;
#pragma unroll
    for (int k = 0; k < N; k++) n += is_not_zero(x[k]);
    value += n;
  }
  PLAIT_DEVICE void finish(Thread &t, const ReduceArgs &a, int64_t i, Value value) const {
    if (a.mode == count_as::COUNT)
      t.global<int64_t>(a.out).store(i, value);
    else
      t.global<bool>(a.out).store(i, a.mode == count_as::ANY ? value > 0 : value == a.total);
  }
};

template <class T>
PLAIT_DEVICE void reduce_sum(Block &t, const ReduceArgs &a) {
  reduce<Arithmetic<T, false>>(t, a);
}
template <class T>
PLAIT_DEVICE void reduce_product(Block &t, const ReduceArgs &a) {
  reduce<Arithmetic<T, true>>(t, a);
}
template <class T>
PLAIT_DEVICE void reduce_count(Block &t, const ReduceArgs &a) {
  reduce<Count<T>>(t, a);
}
#endif
PLAIT_DEVICE_KERNEL(reduce_sum, ReduceArgs, 256, ANY);
PLAIT_DEVICE_KERNEL(reduce_product, ReduceArgs, 256, ANY);
PLAIT_DEVICE_KERNEL(reduce_count, ReduceArgs, 256, ANY);

#if PLAIT_HOST
namespace {

plait_status count(const plait_call *c, uint64_t mask, int mode) {
  ReduceArgs a{};
  a.out = result(c)->data, a.mode = mode;
  return launch_reduction(c, reduce_count_kernel, tensor(c, 0), mask, a);
}

// Sums and products of integers are kept in their own dtype or in 64 bits.
plait_status arithmetic(const plait_call *c, const DeviceKernel &kernel, uint64_t mask,
                        double divisor) {
  const Kind own = kind(tensor(c, 0)->dtype), to = kind(result(c)->dtype);
  if (own != to && (own > I64 || (to != I64 && to != U64))) return PLAIT_DECLINE;
  ReduceArgs a{};
  a.out = result(c)->data, a.number = divisor, a.out_kind = to == U64 ? I64 : to;
  return launch_reduction(c, kernel, tensor(c, 0), mask, a);
}

uint64_t whole(const plait_call *c) { return all_dims(tensor(c, 0)->ndim); }
uint64_t reduced_dims(const plait_call *c) { return dims_mask(c, 1, tensor(c, 0)->ndim); }
bool is_truth(const plait_call *c) { return kind(result(c)->dtype) == Bool; }

plait_status sum(plait_call *c) {
  if (is_truth(c)) return count(c, reduced_dims(c), count_as::ANY);
  return arithmetic(c, reduce_sum_kernel, reduced_dims(c), 1);
}
plait_status mean(plait_call *c) {
  const DLTensor *in = tensor(c, 0), *out = result(c);
  if (kind(out->dtype) < F32) return PLAIT_DECLINE;
  const int64_t results = numel(out);
  double n = 1;
  const uint64_t mask = reduced_dims(c);
  for (int d = 0; d < in->ndim; d++)
    if (mask >> d & 1) n *= double(in->shape[d]);
  return results ? arithmetic(c, reduce_sum_kernel, mask, n) : PLAIT_OK;
}
plait_status product(plait_call *c, uint64_t mask) {
  if (is_truth(c)) return count(c, mask, count_as::ALL);
  return arithmetic(c, reduce_product_kernel, mask, 1);
}
plait_status prod(plait_call *c) { return product(c, whole(c)); }
plait_status prod_dim(plait_call *c) { return product(c, reduced_dims(c)); }

PLAIT_KERNEL("sum", sum);
PLAIT_KERNEL("mean", mean);
PLAIT_KERNEL("prod", prod);
PLAIT_KERNEL("prod.dim", prod_dim);

// an empty list of dimensions is none
uint64_t truth_dims(const plait_call *c) {
  return c->in[1].tag == PLAIT_INTS && c->in[1].n == 0 ? 0 : reduced_dims(c);
}
plait_status any(plait_call *c) { return count(c, whole(c), count_as::ANY); }
plait_status all(plait_call *c) { return count(c, whole(c), count_as::ALL); }
plait_status any_dim(plait_call *c) { return count(c, truth_dims(c), count_as::ANY); }
plait_status all_dim(plait_call *c) { return count(c, truth_dims(c), count_as::ALL); }
plait_status count_nonzero(plait_call *c) { return count(c, reduced_dims(c), count_as::COUNT); }

PLAIT_KERNEL("any", any);
PLAIT_KERNEL("all", all);
PLAIT_KERNEL("any.dim", any_dim);
PLAIT_KERNEL("all.dim", all_dim);
PLAIT_KERNEL("count_nonzero", count_nonzero);

}  // namespace
#endif
}  // namespace plait::cuda
