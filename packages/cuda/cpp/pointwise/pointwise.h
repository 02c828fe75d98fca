// Pointwise operators on the device: what the units that plait_ops.emit writes include. The scalar
// functions are those of the CPU's kernels. PLAIT_POINTWISE has the arguments that core's header of
// this name explains.
#pragma once
#include "block/block.h"
#include "host/walk.h"

namespace plait::cuda {

constexpr int kPointwiseParams = 6, kPointwiseOperands = 4;

// The arguments of a pointwise kernel, for each number of operands.
template <int operands>
struct PointwiseArgs {
  int64_t n;
  char *data[operands + 1];  // the result first
  // bit k: operand k is one number for all elements, whose value is in `number`
  uint32_t is_number;
  uint32_t is_dense;  // element i lies at i times its size in every operand that is no number
  double number[operands][2];
  int64_t integer[operands];
  double param[kPointwiseParams], imaginary[kPointwiseParams];
  int64_t integer_param[kPointwiseParams];
  Walk<operands + 1> walk;
  Fault fault;
  double low, high;  // of a bounded operand
};

namespace result_as {
enum { SAME, FLOAT, BOOL, REAL };
}

}  // namespace plait::cuda

#if PLAIT_KERNELS
namespace plait::cuda {

template <int to, class T>
struct PointwiseResult {
  using type = T;
};
template <class T>
struct PointwiseResult<result_as::BOOL, T> {
  using type = bool;
};
template <class T>
struct PointwiseResult<result_as::REAL, T> {
  using type = typename scalar::math::RealOf<T>::type;
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

// Runs f(operands of element i) for all elements of one thread.
template <class Op, class E, int operands, int params, int to, int bounded, size_t... I,
          size_t... J>
PLAIT_DEVICE void pointwise_body(Thread &t, const PointwiseArgs<operands> &a,
                                 std::index_sequence<I...>, std::index_sequence<J...>) {
  using T = Compute<E>;
  using R =
      std::conditional_t<to == result_as::BOOL, bool,
                         std::conditional_t<to == result_as::REAL && scalar::math::is_complex<T>,
                                            typename PointwiseResult<to, T>::type, E>>;
  const T numbers[operands] = {number_as<T>(a.number[I][0], a.number[I][1], a.integer[I])...};
  for (int64_t i = t.index(); i < a.n; i += t.stride()) {
    int64_t offset[operands + 1];
    if (a.is_dense) {
      offset[0] = i * int64_t(sizeof(R));
      for (int k = 0; k < operands; k++) offset[k + 1] = i * int64_t(sizeof(E));
    } else {
      a.walk.seek(i, offset);
    }
    const T x[operands] = {
        (a.is_number >> I & 1)
            ? numbers[I]
            : widen(t.template global<const E>(a.data[I + 1] + offset[I + 1]).load(0))...};
    if constexpr (bounded >= 0) {
      if (!(x[bounded] >= T(a.low) && x[bounded] <= T(a.high)))
        t.fail(a.fault, kBoundsFault, double(x[bounded]), a.low, a.high);
    }
    const auto y = Op::template call<T>(
        x[I]..., number_as<T>(a.param[J], a.imaginary[J], a.integer_param[J])...);
    const auto out = t.template global<R>(a.data[0] + offset[0]);
    if constexpr (std::is_same_v<R, E> && !std::is_same_v<E, T>) {
      out.store(0, narrow<E>(T(y)));
    } else {
      out.store(0, static_cast<R>(y));
    }
  }
}

}  // namespace plait::cuda

#define PLAIT_POINTWISE_AS(function, op, n_operands, n_params, to, dtypes, bounded, argument, low, \
                           high)                                                                   \
  namespace plait::cuda {                                                                          \
  struct Scalar_##function {                                                                       \
    template <class T, class... A>                                                                 \
    static PLAIT_DEVICE auto call(A... a) {                                                        \
      return ::plait::scalar::function<T>(a...);                                                   \
    }                                                                                              \
  };                                                                                               \
  using Args_##function = PointwiseArgs<n_operands>;                                               \
  template <class E>                                                                               \
  PLAIT_DEVICE void pointwise_##function(Thread &t, const Args_##function &a) {                    \
    pointwise_body<Scalar_##function, E, n_operands, n_params, result_as::to, bounded>(            \
        t, a, std::make_index_sequence<n_operands>(), std::make_index_sequence<n_params>());       \
  }                                                                                                \
  PLAIT_DEVICE_KERNEL(pointwise_##function, Args_##function, 256, dtypes);                         \
  }
#else
#include "host/pointwise.h"
#endif

#define PLAIT_POINTWISE(function, op, n_operands, n_params, to, dtypes) \
  PLAIT_POINTWISE_AS(function, op, n_operands, n_params, to, dtypes, -1, "", 0, 0)
#define PLAIT_POINTWISE_BOUNDED(function, op, n_operands, n_params, to, dtypes, operand, argument, \
                                low, high)                                                         \
  PLAIT_POINTWISE_AS(function, op, n_operands, n_params, to, dtypes, operand, argument, low, high)
