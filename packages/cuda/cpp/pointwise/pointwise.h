// Pointwise operators on the device: what the units that plait_ops.emit writes include. The scalar
// functions are those of the CPU's kernels. PLAIT_POINTWISE has the arguments that core's header of
// this name explains.
#pragma once
#include "block/block.h"
#include "host/walk.h"

namespace plait::cuda {

constexpr int kPointwiseParams = 6, kPointwiseOperands = 4;

// Elements that a thread reads at once, for the widest element of an operator: at most 16 bytes,
// and at most 8 copies of the function.
constexpr int pointwise_width(int bytes) { return bytes <= 2 ? 8 : 16 / bytes; }

// Whether a scalar function is one of special_..., of hundreds of instructions: a kernel has it
// once, for one element at a time, as computing takes longer than reading.
constexpr bool is_special(const char *function) {
  const char prefix[] = "special_";
  for (int i = 0; prefix[i]; i++)
    if (function[i] != prefix[i]) return false;
  return true;
}

// The arguments of a pointwise kernel, for each number of operands.
template <int operands>
struct PointwiseArgs {
  int64_t n;
  int64_t vectors;  // of pointwise_width elements; those behind them are read one by one
  void *data[operands + 1];  // the result first
  uint32_t is_number;  // bit k: operand k is `number` k for all elements
  uint32_t is_repeated;  // bit k: all elements of a vector of operand k are one
  double number[operands][2];  // and its imaginary part
  int64_t integer[operands];
  double param[kPointwiseParams], imaginary[kPointwiseParams];
  int64_t integer_param[kPointwiseParams];
  Walk<operands + 1> walk;  // strides in elements
  Fault fault;
  double low, high;  // of a bounded operand
};

namespace result_as {
enum { SAME, FLOAT, BOOL, REAL };
}

}  // namespace plait::cuda

#if PLAIT_KERNELS
namespace plait::cuda {

// The element of the result.
template <int to, class E>
struct PointwiseResult {
  using type = E;
};
template <class E>
struct PointwiseResult<result_as::BOOL, E> {
  using type = bool;
};
template <class T>
struct PointwiseResult<result_as::REAL, scalar::math::Complex<T>> {
  using type = T;
};

template <class T>
PLAIT_DEVICE T number_as(double value, double imaginary, int64_t integer) {
  if constexpr (scalar::math::is_complex<T>) {
    using R = typename scalar::math::RealOf<T>::type;
    return T(R(value), R(imaginary));
  } else if constexpr (scalar::math::is_floating<T>) {
    return T(value);
  } else {
    return T(integer);
  }
}

// A value that the compiler takes to be another one in each round of a loop. Otherwise it would
// write the loop once for each combination of flags.
PLAIT_DEVICE uint32_t changing(uint32_t flags) {
#if defined(__CUDA_ARCH__)
  asm volatile("" : "+r"(flags));
#endif
  return flags;
}

template <int to, class E, class Y>
PLAIT_DEVICE typename PointwiseResult<to, E>::type pointwise_result(Y y) {
  using R = typename PointwiseResult<to, E>::type;
  if constexpr (std::is_same_v<R, bool>) {
    return static_cast<bool>(y);
  } else {
    return narrow<R>(Compute<R>(y));
  }
}

// The function of one element, whose operands are x.
template <class Op, class E, int to, int bounded, int operands, size_t... I, size_t... J>
PLAIT_DEVICE typename PointwiseResult<to, E>::type pointwise_element(
    Thread &t, const PointwiseArgs<operands> &a, const Compute<E> (&x)[operands],
    std::index_sequence<I...>, std::index_sequence<J...>) {
  using T = Compute<E>;
  if constexpr (bounded >= 0) {
    if (!(x[bounded] >= T(a.low) && x[bounded] <= T(a.high)))
      t.fail(a.fault, kBoundsFault, double(x[bounded]), a.low, a.high);
  }
  return pointwise_result<to, E>(Op::template call<T>(
      x[I]..., number_as<T>(a.param[J], a.imaginary[J], a.integer_param[J])...));
}

template <class Op, class E, int params, int to, int bounded, int kWidth, int operands, size_t... I>
PLAIT_DEVICE void pointwise_body(Thread &t, const PointwiseArgs<operands> &a,
                                 std::index_sequence<I...> is) {
  using T = Compute<E>;
  using R = typename PointwiseResult<to, E>::type;
  constexpr std::make_index_sequence<params> js;
  const T number[operands] = {number_as<T>(a.number[I][0], a.number[I][1], a.integer[I])...};
  const Global<const E> in[operands] = {t.template global<const E>(a.data[I + 1])...};
  const Global<R> out = t.template global<R>(a.data[0]);
  int64_t at[operands + 1];
  if constexpr (kWidth > 1) {
    for (int64_t i = t.index(); i < a.vectors; i += t.stride()) {
      const uint32_t is_number = changing(a.is_number), is_repeated = changing(a.is_repeated);
      a.walk.seek_small(i * kWidth, at);
      Vector<E, kWidth> v[operands];
#pragma unroll
      for (int k = 0; k < operands; k++) {
        if (is_number >> k & 1) continue;
        if (is_repeated >> k & 1) {
          const E element = in[k].load(at[k + 1]);
#pragma unroll
          for (int j = 0; j < kWidth; j++) v[k].at[j] = element;
        } else {
          v[k] = in[k].template load_vector<kWidth>(at[k + 1]);
        }
      }
      Vector<R, kWidth> y;
#pragma unroll
      for (int j = 0; j < kWidth; j++) {
        const T x[operands] = {(is_number >> I & 1) ? number[I] : widen(v[I].at[j])...};
        y.at[j] = pointwise_element<Op, E, to, bounded>(t, a, x, is, js);
      }
      out.template store_vector<kWidth>(at[0], y);
    }
  }
  for (int64_t i = a.vectors * kWidth + t.index(); i < a.n; i += t.stride()) {
    const uint32_t is_number = changing(a.is_number);
    a.walk.seek_small(i, at);
    const T x[operands] = {(is_number >> I & 1) ? number[I] : widen(in[I].load(at[I + 1]))...};
    out.store(at[0], pointwise_element<Op, E, to, bounded>(t, a, x, is, js));
  }
}

}  // namespace plait::cuda

#define PLAIT_POINTWISE_KERNEL_AS(function, n_operands, n_params, to, dtypes, bounded, low, high) \
  namespace plait::cuda {                                                                         \
  struct Scalar_##function {                                                                      \
    template <class T, class... A>                                                                \
    static PLAIT_DEVICE auto call(A... a) {                                                       \
      return ::plait::scalar::function<T>(a...);                                                  \
    }                                                                                             \
  };                                                                                              \
  using Args_##function = PointwiseArgs<n_operands>;                                              \
  template <class E>                                                                              \
  PLAIT_DEVICE void pointwise_##function(Thread &t, const Args_##function &a) {                   \
    constexpr int kWidth = is_special(#function) ? 1 : pointwise_width(sizeof(E));                \
    pointwise_body<Scalar_##function, E, n_params, result_as::to, bounded, kWidth>(               \
        t, a, std::make_index_sequence<n_operands>());                                            \
  }                                                                                               \
  PLAIT_DEVICE_KERNEL(pointwise_##function, Args_##function, 256, dtypes);                        \
  }
#define PLAIT_POINTWISE_AS(function, op, n_operands, n_params, to, dtypes, bounded, argument, low, \
                           high)                                                                   \
  PLAIT_POINTWISE_KERNEL_AS(function, n_operands, n_params, to, dtypes, bounded, low, high)
#else
#include "host/pointwise.h"
#endif

// The kernels of a scalar function, and call_<function>, which launches them: for kernels that are
// chosen by hand.
#define PLAIT_POINTWISE_KERNEL(function, n_operands, n_params, to, dtypes) \
  PLAIT_POINTWISE_KERNEL_AS(function, n_operands, n_params, to, dtypes, -1, 0, 0)
#define PLAIT_POINTWISE(function, op, n_operands, n_params, to, dtypes) \
  PLAIT_POINTWISE_AS(function, op, n_operands, n_params, to, dtypes, -1, "", 0, 0)
#define PLAIT_POINTWISE_BOUNDED(function, op, n_operands, n_params, to, dtypes, operand, argument, \
                                low, high)                                                         \
  PLAIT_POINTWISE_AS(function, op, n_operands, n_params, to, dtypes, operand, argument, low, high)
