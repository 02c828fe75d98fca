// The compiler vectorises these loops. Each is written once, as an always-inlined body, and
// instantiated in functions that are compiled for one instruction set: so the linker cannot use a
// symbol of the AVX2 set for a baseline one. setup.py compiles this file with -O3 -fno-math-errno:
// a sqrt that may set errno keeps a loop scalar.
#include "loops.hpp"

#include <plait/half.h>

#if defined(__x86_64__)
#include <immintrin.h>  // functions that name their instruction set and are always inlined
#endif

namespace plait::optim {
namespace {

template <class R, class T, uint32_t flags>
PLAIT_INLINE void loop(const R &rule, void *const *operands, int64_t n) {
  // a missing operand is never used
  void *const spare = operands[0];
  T *__restrict p = static_cast<T *>(spare);
  const T *__restrict g = static_cast<const T *>(operands[1]);
  T *__restrict a = static_cast<T *>(operands[2] ? operands[2] : spare);
  T *__restrict b = static_cast<T *>(operands[3] ? operands[3] : spare);
  T *__restrict c = static_cast<T *>(operands[4] ? operands[4] : spare);
  const R r = rule;  // a copy that stays in registers
  constexpr Flags<flags> known{};
  for (int64_t i = 0; i < n; i++) {
    const T d = r.template gradient<T>(known, T(r.scale), g[i], p[i]);
    r.template element<T>(known, d, p[i], a[i], b[i], c[i]);
  }
}

template <class R, class T, uint32_t flags = R::n_flags - 1>
PLAIT_INLINE void any_loop(const R &rule, void *const *operands, int64_t n) {
  if (rule.flags == flags) return loop<R, T, flags>(rule, operands, n);
  if constexpr (flags > 0) any_loop<R, T, flags - 1>(rule, operands, n);
}

// Eight sums side by side, in double: the same order of additions in every instruction set.
template <class T>
PLAIT_INLINE double sum_of_squares(const void *data, int64_t n) {
  const T *x = static_cast<const T *>(data);
  double sums[8] = {};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (int lane = 0; lane < 8; lane++) sums[lane] += double(x[i + lane]) * double(x[i + lane]);
  for (; i < n; i++) sums[i % 8] += double(x[i]) * double(x[i]);
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

struct Float16 {
  static PLAIT_INLINE float value(uint16_t h) { return plait_float16_to_float(h); }
  static PLAIT_INLINE uint16_t bits(float x) { return plait_float16_of_float(x); }
};

struct Bfloat16 {
  static PLAIT_INLINE float value(uint16_t b) { return plait_bfloat16_to_float(b); }
  static PLAIT_INLINE uint16_t bits(float x) { return plait_bfloat16_of_float(x); }
};

}  // namespace

#define PLAIT_LOOPS(set, attribute)                                                  \
  namespace {                                                                        \
  template <class R, class T>                                                        \
  attribute void set##_loop(const Rule &rule, void *const *operands, int64_t n) {    \
    any_loop<R, T>(static_cast<const R &>(rule), operands, n);                       \
  }                                                                                  \
  template <class T>                                                                 \
  attribute double set##_squares(const void *data, int64_t n) {                      \
    return sum_of_squares<T>(data, n);                                               \
  }                                                                                  \
  template <class H>                                                                 \
  attribute void set##_widen(float *to, const uint16_t *from, int64_t n) {           \
    for (int64_t i = 0; i < n; i++) to[i] = H::value(from[i]);                       \
  }                                                                                  \
  template <class H>                                                                 \
  attribute void set##_narrow(uint16_t *to, const float *from, int64_t n) {          \
    for (int64_t i = 0; i < n; i++) to[i] = H::bits(from[i]);                        \
  }                                                                                  \
  template <class... Rules>                                                          \
  constexpr LoopSet<Rules...> set##_table(LoopSet<Rules...>) {                       \
    return {LoopPair<Rules>{set##_loop<Rules, float>, set##_loop<Rules, double>}..., \
            #set,                                                                    \
            set##_squares<float>,                                                    \
            set##_squares<double>,                                                   \
            {set##_widen<Float16>, set##_narrow<Float16>},                           \
            {set##_widen<Bfloat16>, set##_narrow<Bfloat16>}};                        \
  }                                                                                  \
  }

PLAIT_LOOPS(base, )
const Loops base_loops = base_table(Loops{});

#if defined(__x86_64__)
#define PLAIT_AVX2 __attribute__((target("avx2,fma,f16c")))
PLAIT_LOOPS(avx2, PLAIT_AVX2)

namespace {

// eight conversions in one instruction
PLAIT_AVX2 void f16c_widen(float *to, const uint16_t *from, int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(to + i,
                     _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i *>(from + i))));
  for (; i < n; i++) to[i] = Float16::value(from[i]);
}
PLAIT_AVX2 void f16c_narrow(uint16_t *to, const float *from, int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i *>(to + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
  for (; i < n; i++) to[i] = Float16::bits(from[i]);
}
constexpr Loops with_f16c(Loops set) {
  set.float16 = {f16c_widen, f16c_narrow};
  return set;
}
const Loops avx2_loops = with_f16c(avx2_table(Loops{}));

}  // namespace
#endif

const Loops &best_loops(const char *required) {
#if defined(__x86_64__)
  const bool base = required && __builtin_strcmp(required, "base") == 0;
  __builtin_cpu_init();
  if (!base && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("f16c"))
    return avx2_loops;
#else
  (void)required;
#endif
  return base_loops;
}

}  // namespace plait::optim
