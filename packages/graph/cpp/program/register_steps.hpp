// The functions of register code, for one set of instructions: a source defines PLAIT_STEPS, the
// name of the function that gives their table, and PLAIT_VECTOR_BYTES. No function of this file is
// seen by another source, so that the linker cannot use one of another set in its place.
#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "program/register_code.hpp"

#define PLAIT_ALWAYS inline __attribute__((always_inline))
// An instruction ends before the next begins, so that their values need few registers.
#if defined(__x86_64__)
#define PLAIT_IN_REGISTER(v) __asm__ volatile("" : "+x"(v))
#elif defined(__aarch64__)
#define PLAIT_IN_REGISTER(v) __asm__ volatile("" : "+w"(v))
#else
#define PLAIT_IN_REGISTER(v) (void)(v)
#endif

namespace plait::graph {
namespace {

template <class T>
struct VectorOf {
  typedef T type __attribute__((vector_size(PLAIT_VECTOR_BYTES)));
  typedef T unaligned
      __attribute__((vector_size(PLAIT_VECTOR_BYTES), aligned(sizeof(T)), may_alias));
};
template <class T>
using Vector = typename VectorOf<T>::type;

template <class T>
using StepOf = void (*)(Vector<T>, Vector<T>, Vector<T>, Vector<T>, Vector<T>, Vector<T>, Vector<T>,
                        Vector<T>, const Instruction *, int64_t at);

template <class T>
PLAIT_ALWAYS Vector<T> repeated(T x) {
  Vector<T> v;
  for (size_t i = 0; i < sizeof v / sizeof x; i++) v[i] = x;
  return v;
}

PLAIT_ALWAYS Vector<float> square_root(Vector<float> x) {
#if PLAIT_VECTOR_BYTES == 32
  return _mm256_sqrt_ps(x);
#elif defined(__x86_64__)
  return _mm_sqrt_ps(x);
#elif defined(__aarch64__)
  return vsqrtq_f32(x);
#else
  for (size_t i = 0; i < sizeof x / sizeof x[0]; i++) x[i] = __builtin_sqrtf(x[i]);
  return x;
#endif
}
PLAIT_ALWAYS Vector<double> square_root(Vector<double> x) {
#if PLAIT_VECTOR_BYTES == 32
  return _mm256_sqrt_pd(x);
#elif defined(__x86_64__)
  return _mm_sqrt_pd(x);
#elif defined(__aarch64__)
  return vsqrtq_f64(x);
#else
  for (size_t i = 0; i < sizeof x / sizeof x[0]; i++) x[i] = __builtin_sqrt(x[i]);
  return x;
#endif
}
PLAIT_ALWAYS Vector<float> magnitude(Vector<float> x) {
  typedef uint32_t Bits __attribute__((vector_size(PLAIT_VECTOR_BYTES)));
  return Vector<float>(Bits(x) & (Bits{} + 0x7fffffffu));
}
PLAIT_ALWAYS Vector<double> magnitude(Vector<double> x) {
  typedef uint64_t Bits __attribute__((vector_size(PLAIT_VECTOR_BYTES)));
  return Vector<double>(Bits(x) & (Bits{} + 0x7fffffffffffffffu));
}

// One register; `y` is the operand, if the operation has one.
template <Operation o, class T>
PLAIT_ALWAYS Vector<T> apply(Vector<T> x, Vector<T> y) {
  const Vector<T> zero{};
  if constexpr (o == Operation::load) return y;
  if constexpr (o == Operation::neg) return -x;
  if constexpr (o == Operation::abs) return magnitude(x);
  if constexpr (o == Operation::sqrt) return square_root(x);
  if constexpr (o == Operation::rsqrt) return repeated(T(1)) / square_root(x);
  if constexpr (o == Operation::reciprocal) return repeated(T(1)) / x;
  if constexpr (o == Operation::square) return x * x;
  if constexpr (o == Operation::relu) return x <= zero ? zero : x;
  if constexpr (o == Operation::add) return x + y;
  if constexpr (o == Operation::sub) return x - y;
  if constexpr (o == Operation::mul) return x * y;
  if constexpr (o == Operation::div) return x / y;
  if constexpr (o == Operation::maximum) return (x > y) | (x != x) ? x : y;
  if constexpr (o == Operation::minimum) return (x < y) | (x != x) ? x : y;
  if constexpr (o == Operation::fmax) return (x > y) | (y != y) ? x : y;
  if constexpr (o == Operation::fmin) return (x < y) | (y != y) ? x : y;
  if constexpr (o == Operation::clamp_min) return (x < y) | (y != y) ? y : x;
  if constexpr (o == Operation::clamp_max) return (x > y) | (y != y) ? y : x;
  if constexpr (o == Operation::lower_bound) return x < y ? y : x;
  if constexpr (o == Operation::upper_bound) return x > y ? y : x;
  if constexpr (o == Operation::relu_backward) return y <= zero ? zero : x;
  if constexpr (o == Operation::leaky_relu) return x > zero ? x : x * y;
  return x;
}

constexpr bool has_operand(Operation o) { return o == Operation::load || o >= Operation::add; }

template <Operation o, Form f, class T>
PLAIT_ALWAYS Vector<T> apply_at(Vector<T> x, const char *data, int i, Vector<T> one) {
  Vector<T> y = one;
  if constexpr (has_operand(o) && (f == Form::elements || f == Form::elements_first))
    y = *reinterpret_cast<const typename VectorOf<T>::unaligned *>(data + i * PLAIT_VECTOR_BYTES);
  if constexpr (f == Form::elements_first || f == Form::one_first)
    x = apply<o, T>(y, x);
  else
    x = apply<o, T>(x, y);
  PLAIT_IN_REGISTER(x);
  return x;
}

template <Operation o, class T>
PLAIT_ALWAYS void store_at(char *data, int i, Vector<T> x) {
  char *const to = data + i * PLAIT_VECTOR_BYTES;
#if PLAIT_VECTOR_BYTES == 32
  if constexpr (o == Operation::stream)
    return _mm256_stream_si256(reinterpret_cast<__m256i *>(to), __m256i(x));
#elif defined(__x86_64__)
  if constexpr (o == Operation::stream)
    return _mm_stream_si128(reinterpret_cast<__m128i *>(to), __m128i(x));
#endif
  *reinterpret_cast<typename VectorOf<T>::unaligned *>(to) = x;
}

#define PLAIT_REGISTERS                                                                      \
  Vector<T> a, Vector<T> b, Vector<T> c, Vector<T> d, Vector<T> e, Vector<T> f, Vector<T> g, \
      Vector<T> h, const Instruction *code, int64_t at
#define PLAIT_NEXT \
  return reinterpret_cast<StepOf<T>>(code[1].step)(a, b, c, d, e, f, g, h, code + 1, at)

template <Operation o, Form form, class T>
void step(PLAIT_REGISTERS) {
  const char *const data = code->data + (at & code->advance);
  Vector<T> one{};
  if constexpr (has_operand(o) && (form == Form::one || form == Form::one_first)) {
    T number;
    std::memcpy(&number, code->data, sizeof number);
    one = repeated(number);
  }
  a = apply_at<o, form, T>(a, data, 0, one);
  b = apply_at<o, form, T>(b, data, 1, one);
  c = apply_at<o, form, T>(c, data, 2, one);
  d = apply_at<o, form, T>(d, data, 3, one);
  e = apply_at<o, form, T>(e, data, 4, one);
  f = apply_at<o, form, T>(f, data, 5, one);
  g = apply_at<o, form, T>(g, data, 6, one);
  h = apply_at<o, form, T>(h, data, 7, one);
  PLAIT_NEXT;
}

template <Operation o, class T>
void store_step(PLAIT_REGISTERS) {
  char *const data = code->data + (at & code->advance);
  store_at<o, T>(data, 0, a);
  store_at<o, T>(data, 1, b);
  store_at<o, T>(data, 2, c);
  store_at<o, T>(data, 3, d);
  store_at<o, T>(data, 4, e);
  store_at<o, T>(data, 5, f);
  store_at<o, T>(data, 6, g);
  store_at<o, T>(data, 7, h);
  PLAIT_NEXT;
}

template <class T>
void end_step(Vector<T>, Vector<T>, Vector<T>, Vector<T>, Vector<T>, Vector<T>, Vector<T>,
              Vector<T>, const Instruction *, int64_t) {}

template <class T>
void run_code(const Instruction *code, int64_t begin, int64_t end) {
  const Vector<T> z{};
  const auto first = reinterpret_cast<StepOf<T>>(code->step);
  for (int64_t at = begin; at < end; at += 8 * PLAIT_VECTOR_BYTES)
    first(z, z, z, z, z, z, z, z, code, at);
}

void fence() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

constexpr bool is_needed(Operation o) {
  if (o == Operation::clamp_min || o == Operation::clamp_max)
    return selects(operator_of(o)) || selects("clamp_between");
  if (o == Operation::lower_bound || o == Operation::upper_bound)
    return selects("hardtanh") || selects("relu6");
  return !operator_of(o) || selects(operator_of(o));
}

template <Operation o, class T>
void fill(StepTable *table) {
  auto &forms = table->steps[size_t(o)];
  if constexpr (!is_needed(o)) {
    // its pointers stay NULL
  } else if constexpr (o == Operation::store || o == Operation::stream) {
    forms[0] = reinterpret_cast<Step>(store_step<o, T>);
  } else {
    forms[0] = reinterpret_cast<Step>(step<o, Form::elements, T>);
    if constexpr (has_operand(o)) forms[1] = reinterpret_cast<Step>(step<o, Form::one, T>);
    if constexpr (o >= Operation::add) {
      forms[2] = reinterpret_cast<Step>(step<o, Form::elements_first, T>);
      forms[3] = reinterpret_cast<Step>(step<o, Form::one_first, T>);
    }
  }
  if constexpr (size_t(o) + 1 < size_t(Operation::count))
    fill<Operation{uint8_t(uint8_t(o) + 1)}, T>(table);
}

template <class T>
StepTable table() {
  if constexpr (!(sizeof(T) == 4 ? kSelectsFloats : kSelectsDoubles)) return {};
  StepTable result{8 * PLAIT_VECTOR_BYTES / int64_t(sizeof(T)),
                   {},
                   reinterpret_cast<Step>(end_step<T>),
                   run_code<T>,
                   fence};
  fill<Operation::load, T>(&result);
  return result;
}

}  // namespace

const StepTables &PLAIT_STEPS() {
  static const StepTables tables{table<float>(), table<double>()};
  return tables;
}

}  // namespace plait::graph
