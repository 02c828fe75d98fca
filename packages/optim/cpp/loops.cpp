// The compiler vectorises these loops. Each is written once, as an always-inlined body, and
// instantiated in functions that are compiled for one instruction set: no symbol of the AVX2 set
// can be mistaken for a baseline one. setup.py compiles this file with -O3 -fno-math-errno: a sqrt
// that may set errno keeps a loop scalar.
#include "loops.hpp"

#if defined(__x86_64__)
#include <immintrin.h>  // functions that name their instruction set and are always inlined
#endif

namespace plait::optim {
namespace {

template <class R, class T, uint32_t flags>
PLAIT_INLINE void loop(const R &rule, void *const *operands, int64_t n) {
  // an absent operand is never touched, and need not be NULL
  void *const spare = operands[0];
  T *__restrict p = static_cast<T *>(spare);
  const T *__restrict g = static_cast<const T *>(operands[1]);
  T *__restrict a = static_cast<T *>(operands[2] ? operands[2] : spare);
  T *__restrict b = static_cast<T *>(operands[3] ? operands[3] : spare);
  T *__restrict c = static_cast<T *>(operands[4] ? operands[4] : spare);
  const R r = rule;  // in registers: nothing can write to it
  const T scale = T(r.scale), l2 = T(r.l2);
  for (int64_t i = 0; i < n; i++) {
    T d = scale * g[i];
    if (flags & Rule::decays) d += l2 * p[i];
    r.template element<T, flags>(d, p[i], a[i], b[i], c[i]);
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

// float16 and bfloat16, in integer arithmetic that vectorises.

PLAIT_INLINE uint32_t bits_of(float x) {
  uint32_t u;
  __builtin_memcpy(&u, &x, 4);
  return u;
}
PLAIT_INLINE float float_of(uint32_t u) {
  float x;
  __builtin_memcpy(&x, &u, 4);
  return x;
}

struct Float16 {
  static PLAIT_INLINE float value(uint16_t h) {
    const uint32_t sign = uint32_t(h & 0x8000) << 16, rest = uint32_t(h & 0x7fff) << 13;
    // the exponent's bias goes from 15 to 127, and subnormal numbers become normal on the way
    const uint32_t scaled = bits_of(float_of(rest) * 0x1p112f);
    return float_of(sign | (rest < 0x0f800000 ? scaled : scaled | 0x7f800000));
  }
  static PLAIT_INLINE uint16_t bits(float x) {
    const uint32_t u = bits_of(x), sign = u >> 16 & 0x8000, rest = u & 0x7fffffff;
    const uint32_t normal = (rest - (112u << 23) + 0xfff + (rest >> 13 & 1)) >> 13;
    // beside 0.5 a float32 ends where a subnormal half does: the sum rounds
    const uint32_t small = bits_of(float_of(rest) + 0.5f) - bits_of(0.5f);
    const uint32_t finite = rest < (113u << 23) ? small : normal;
    const uint32_t special = rest > 0x7f800000 ? 0x7e00 : 0x7c00;
    return uint16_t(sign | (rest < 0x477ff000 ? finite : special));
  }
};

struct Bfloat16 {
  static PLAIT_INLINE float value(uint16_t b) { return float_of(uint32_t(b) << 16); }
  static PLAIT_INLINE uint16_t bits(float x) {
    const uint32_t u = bits_of(x), finite = (u + 0x7fff + (u >> 16 & 1)) >> 16;
    return uint16_t(x == x ? finite : u >> 16 | 0x40);
  }
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

const Loops &best_loops(const char *wanted) {
#if defined(__x86_64__)
  const bool base = wanted && __builtin_strcmp(wanted, "base") == 0;
  __builtin_cpu_init();
  if (!base && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("f16c"))
    return avx2_loops;
#else
  (void)wanted;
#endif
  return base_loops;
}

}  // namespace plait::optim
