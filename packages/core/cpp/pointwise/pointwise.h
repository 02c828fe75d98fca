// Pointwise operators: one scalar function, every dtype, any strides.
//
// The emitter of plait-ops writes units that include the headers of families:
//     #include "pointwise/pointwise.h"
//     #include "pointwise/arithmetic.h"
//     PLAIT_POINTWISE(add, "add", 2, 1, SAME, ANY)
// with the names of the function and of the operator, the operator's number of operands (the first
// arguments) and of parameters (the next ones, numbers), the result's dtype (SAME or FLOAT: the
// operands'; BOOL; REAL: that of a complex number's parts) and the dtypes it is made for. float16
// and bfloat16 compute in float32: tiles of them pass through its loop, but a function of few steps
// has loops that convert them in registers, as copies of tiles would take most of the time. An
// operator with a bounded operand has PLAIT_POINTWISE_BOUNDED, with the operand, its name and its
// bounds.
#pragma once
#include <utility>

#include "kernel/avx512.h"
#include "kernel/elementwise.h"
#include "pointwise/halves.h"
#include "pointwise/math.h"

namespace plait::core {

constexpr int kMaxParams = 6;
struct Params {
  double f[kMaxParams];
  int64_t i[kMaxParams];
  double imaginary[kMaxParams];
  bool half_number;  // a loop of halves reads its numbers as such elements, not as float32
};

namespace group {  // which dtypes an operator is made for
enum {
  FLOATING = 1,
  INTEGERS = 2,
  BOOLEAN = 4,
  COMPLEX = 8,
  NUMERIC = FLOATING | INTEGERS,
  INTEGRAL = INTEGERS | BOOLEAN,
  INEXACT = FLOATING | COMPLEX,
  ARITHMETIC = NUMERIC | COMPLEX,
  ALL = NUMERIC | BOOLEAN,
  ANY = ALL | COMPLEX
};
}
namespace promote {
enum { SAME, FLOAT, BOOL, REAL };
}

struct PointwiseOp {
  int n_operands, n_params, to;  // to: of promote
  Loop loop[kReal];  // NULL: not made for this dtype
  Loop complex[2];
  // The last operand is a number, or all but the first are, of float32, int32 and int64. NULL: no
  // such loop.
  struct Numbers {
    Loop last, all;
  };
  Numbers float32, int32, int64;
  // Of float16 and bfloat16, if there are such: the loop over tensors, and those with numbers.
  struct HalfLoops {
    Loop all_tensors;
    Numbers numbers;
  };
  HalfLoops float16, bfloat16;
};

// An operand of floats that must lie in [low, high].
struct Bounds {
  int operand;
  const char *argument;
  double low, high;
};

plait_status run_pointwise(plait_call *c, const PointwiseOp &op, const Bounds *bounds = nullptr);

template <class T>
PLAIT_INLINE T param(const Params &q, size_t j) {
  if constexpr (scalar::math::is_complex<T>) {
    using R = typename scalar::math::RealOf<T>::type;
    return T(R(q.f[j]), R(q.imaginary[j]));
  } else {
    return is_float<T> ? T(q.f[j]) : T(q.i[j]);
  }
}

// Some functions of float32 have a form for small arguments, or for small quotients of their two
// arguments, that vectorises where the general one can't: `name<T, true>`.
template <class T>
constexpr bool is_float32 = std::is_same_v<T, float>;
template <bool yes>
struct QuickIf {
  static constexpr bool value = yes;
};
template <class Op, class T>
constexpr bool has_quick = decltype(Op::template quick_test<T>(0))::value;
bool all_small(const float *x, int64_t n);  // |x| < 2^28
// |x / y| < 2^28, and y is neither 0 nor infinite; step: 0 if y is one number
bool all_quotients_small(const float *x, const float *y, int64_t step, int64_t n);

// Whether math::FewSteps says that the function is one of a few instructions.
template <class Op>
constexpr bool has_few_steps = decltype(Op::few_steps_test(scalar::math::FewSteps()))::value;
// Whether there are loops whose last operands are numbers: not where math::OfArrays says otherwise.
template <class Op>
constexpr bool takes_numbers = !decltype(Op::arrays_test(0))::value;

template <class Op, class T, class R, bool quick, class... P>
PLAIT_INLINE void pointwise_apply(R *r, int64_t n, const Params &params,
                                  std::index_sequence<> /*no parameters*/, P... p) {
  (void)params;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; i++) r[i] = static_cast<R>(Op::template call<T, quick>(p[i]...));
}
template <class Op, class T, class R, bool quick, size_t... J, class... P>
PLAIT_INLINE void pointwise_apply(R *r, int64_t n, const Params &params, std::index_sequence<J...>,
                                  P... p) {
  [&](auto... q) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; i++)
      r[i] = static_cast<R>(Op::template call<T, quick>(p[i]..., q...));
  }(param<T>(params, J)...);
}

// An operand that is one number for all elements.
template <class T>
struct Repeated {
  T value;
  PLAIT_INLINE T operator[](int64_t) const { return value; }
};
// An operand of bools, read as bytes: compilers do not vectorise operations on bools themselves.
struct Bools {
  const uint8_t *data;
  PLAIT_INLINE bool operator[](int64_t i) const { return data[i] != 0; }
};
template <class T, bool number>
PLAIT_INLINE auto operand_at(const char *data) {
  if constexpr (number) {
    return Repeated<T>{*reinterpret_cast<const T *>(data)};
  } else if constexpr (std::is_same_v<T, bool>) {
    return Bools{reinterpret_cast<const uint8_t *>(data)};
  } else {
    return reinterpret_cast<const T *>(data);
  }
}

// The operands from number `tensors` on are numbers.
template <class Op, class T, int params, size_t tensors, class R, size_t... I>
PLAIT_INLINE void pointwise_body(R *r, char *const *in, int64_t n, const Params &q,
                                 std::index_sequence<I...>) {
  constexpr std::make_index_sequence<params> js;
  if constexpr (has_quick<Op, T>) {
    const T *x = reinterpret_cast<const T *>(in[0]), *y = reinterpret_cast<const T *>(in[1]);
    if (sizeof...(I) == 1 ? all_small(x, n) : all_quotients_small(x, y, tensors > 1, n))
      return pointwise_apply<Op, T, R, true>(r, n, q, js, operand_at<T, (I >= tensors)>(in[I])...);
  }
  pointwise_apply<Op, T, R, false>(r, n, q, js, operand_at<T, (I >= tensors)>(in[I])...);
}

template <int to, class T>
struct ResultOf {
  using type = T;
};
template <class T>
struct ResultOf<promote::BOOL, T> {
  using type = bool;
};
template <class T>
struct ResultOf<promote::REAL, T> {
  using type = typename scalar::math::RealOf<T>::type;
};

template <class Op, class T, int operands, int params, int to, int tensors>
struct PointwiseLoop {
  static PLAIT_INLINE void run(char *out, char *const *in, int64_t n, const Params *q) {
    using R = typename ResultOf<to, T>::type;
    pointwise_body<Op, T, params, size_t(tensors)>(reinterpret_cast<R *>(out), in, n, *q,
                                                   std::make_index_sequence<operands>());
  }
};
template <class Op, class T, int operands, int params, int to, int tensors>
void pointwise_loop(char *out, char *const *in, int64_t n, const void *context) {
  using OfOp = PointwiseLoop<Op, T, operands, params, to, tensors>;
  const Params *q = static_cast<const Params *>(context);
  if constexpr (is_float32<T> && !has_few_steps<Op>) {
    run_loop<OfOp>(out, in, n, q);
  } else {
    OfOp::run(out, in, n, q);
  }
}

template <class H, bool number>
PLAIT_INLINE auto halves_at(const char *data, const Params &q) {
  if constexpr (number) {
    return RepeatedHalf{q.half_number ? H::one(*reinterpret_cast<const uint16_t *>(data))
                                      : *reinterpret_cast<const float *>(data)};
  } else {
    return HalvesOf<H>{reinterpret_cast<const uint16_t *>(data)};
  }
}

template <class Op, class H, int params, int to, size_t tensors, size_t... I, size_t... J>
PLAIT_INLINE void halves_body(char *out, char *const *in, int64_t n, const Params &q,
                              std::index_sequence<I...> operands, std::index_sequence<J...>) {
  using R = std::conditional_t<to == promote::BOOL, bool, uint16_t>;
  const float numbers[] = {param<float>(q, J)..., 0};
  const auto f = [numbers](auto... x) __attribute__((always_inline)) {
    return Op::template call<float, false>(x..., numbers[J]...);
  };
  halves_rows<H>(reinterpret_cast<R *>(out), n, f, operands,
                 halves_at<H, (I >= tensors)>(in[I], q)...);
}
template <class Op, class H, int operands, int params, int to, int tensors>
void halves_loop(char *out, char *const *in, int64_t n, const void *context) {
  halves_body<Op, H, params, to, size_t(tensors)>(out, in, n, *static_cast<const Params *>(context),
                                                  std::make_index_sequence<operands>(),
                                                  std::make_index_sequence<params>());
}

template <class Op, class T, int operands, int params, int to, Kind k, bool result,
          int tensors = operands>
constexpr Loop loop_if() {
  if constexpr (result && selects(k)) {
    return pointwise_loop<Op, T, operands, params, to, tensors>;
  } else {
    return nullptr;
  }
}

template <class Op, class T, int operands, int params, int to, Kind k, int g>
constexpr PointwiseOp::Numbers numbers_if() {
  constexpr bool made = (g & (is_float<T> ? group::FLOATING : group::INTEGERS)) != 0;
  constexpr bool result = made && operands > 1 && takes_numbers<Op>;
  return {loop_if<Op, T, operands, params, to, k, result, operands - 1>(),
          loop_if<Op, T, operands, params, to, k, result, 1>()};
}

template <class Op, class H, int operands, int params, int to, Kind k, int g>
constexpr PointwiseOp::HalfLoops halves_if() {
  PointwiseOp::HalfLoops loops{nullptr, {nullptr, nullptr}};
  if constexpr (selects(k) && has_few_steps<Op> && (g & group::FLOATING) != 0) {
    loops.all_tensors = halves_loop<Op, H, operands, params, to, operands>;
    if constexpr (operands > 1 && takes_numbers<Op>) {
      loops.numbers = {halves_loop<Op, H, operands, params, to, operands - 1>,
                       halves_loop<Op, H, operands, params, to, 1>};
    }
  }
  return loops;
}

template <class Op, int operands, int params, int to, int g>
constexpr PointwiseOp pointwise_op = {
    operands,
    params,
    to,
    {loop_if<Op, bool, operands, params, to, Bool, (g & group::BOOLEAN) != 0>(),
     loop_if<Op, uint8_t, operands, params, to, U8, (g & group::INTEGERS) != 0>(),
     loop_if<Op, int8_t, operands, params, to, I8, (g & group::INTEGERS) != 0>(),
     loop_if<Op, uint16_t, operands, params, to, U16, (g & group::INTEGERS) != 0>(),
     loop_if<Op, int16_t, operands, params, to, I16, (g & group::INTEGERS) != 0>(),
     loop_if<Op, uint32_t, operands, params, to, U32, (g & group::INTEGERS) != 0>(),
     loop_if<Op, int32_t, operands, params, to, I32, (g & group::INTEGERS) != 0>(),
     loop_if<Op, uint64_t, operands, params, to, U64, (g & group::INTEGERS) != 0>(),
     loop_if<Op, int64_t, operands, params, to, I64, (g & group::INTEGERS) != 0>(),
     loop_if<Op, float, operands, params, to, F32, (g & group::FLOATING) != 0>(),
     loop_if<Op, double, operands, params, to, F64, (g & group::FLOATING) != 0>()},
    {loop_if<Op, Complex64, operands, params, to, C64, (g & group::COMPLEX) != 0>(),
     loop_if<Op, Complex128, operands, params, to, C128, (g & group::COMPLEX) != 0>()},
    numbers_if<Op, float, operands, params, to, F32, g>(),
    numbers_if<Op, int32_t, operands, params, to, I32, g>(),
    numbers_if<Op, int64_t, operands, params, to, I64, g>(),
    halves_if<Op, Half, operands, params, to, F16, g>(),
    halves_if<Op, Bfloat, operands, params, to, BF16, g>()};

}  // namespace plait::core

#define PLAIT_POINTWISE(function, op, n_operands, n_params, to, dtypes) \
  PLAIT_POINTWISE_AS(function, op, n_operands, n_params, to, dtypes, nullptr)

#define PLAIT_POINTWISE_BOUNDED(function, op, n_operands, n_params, to, dtypes, operand, argument, \
                                low, high)                                                         \
  namespace plait::core {                                                                          \
  namespace {                                                                                      \
  constexpr Bounds bounds_##function = {operand, argument, low, high};                             \
  }                                                                                                \
  }                                                                                                \
  PLAIT_POINTWISE_AS(function, op, n_operands, n_params, to, dtypes, &bounds_##function)

#define PLAIT_POINTWISE_AS(function, op, n_operands, n_params, to, dtypes, bounds)            \
  namespace plait::core {                                                                     \
  namespace {                                                                                 \
  struct Scalar_##function {                                                                  \
    template <class T, bool quick, class... A>                                                \
    static PLAIT_INLINE auto call(A... a) {                                                   \
      if constexpr (quick) {                                                                  \
        return quick_call<T>(a...);                                                           \
      } else {                                                                                \
        return ::plait::scalar::function<T>(a...);                                            \
      }                                                                                       \
    }                                                                                         \
    template <class T, class... A>                                                            \
    static PLAIT_INLINE auto quick_call(A... a)                                               \
        -> decltype(::plait::scalar::function<T, true>(a...)) {                               \
      return ::plait::scalar::function<T, true>(a...);                                        \
    }                                                                                         \
    template <class T>                                                                        \
    static auto quick_test(int)                                                               \
        -> decltype(::plait::scalar::function<T, true>(T()), QuickIf<is_float32<T>>());       \
    template <class T>                                                                        \
    static auto quick_test(int)                                                               \
        -> decltype(::plait::scalar::function<T, true>(T(), T()), QuickIf<is_float32<T>>());  \
    template <class T>                                                                        \
    static QuickIf<false> quick_test(...);                                                    \
    template <class T>                                                                        \
    static auto arrays_test(T)                                                                \
        -> decltype(::plait::scalar::function(scalar::math::OfArrays<T>()), QuickIf<true>()); \
    static QuickIf<false> arrays_test(...);                                                   \
    template <class F>                                                                        \
    static auto few_steps_test(F few)                                                         \
        -> QuickIf<std::is_void_v<decltype(::plait::scalar::function(few))>>;                 \
    static QuickIf<false> few_steps_test(...);                                                \
  };                                                                                          \
  plait_status pointwise_##function(plait_call *c) {                                          \
    return run_pointwise(                                                                     \
        c, pointwise_op<Scalar_##function, n_operands, n_params, promote::to, group::dtypes>, \
        bounds);                                                                              \
  }                                                                                           \
  PLAIT_KERNEL(op, pointwise_##function);                                                     \
  }                                                                                           \
  }
