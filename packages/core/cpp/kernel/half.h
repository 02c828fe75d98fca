// Runs of float16 and bfloat16 to and from float32, and float64 to them. A kernel that knows halves
// reads and writes them in blocks by these functions and computes in float32.
#pragma once
#include <plait/half.h>

#include "kernel/vec.h"

#if defined(__AVX__)
#include <immintrin.h>
#endif

namespace plait::core {

// float64 to float32 such that rounding the result to fewer bits equals rounding the float64 once.
PLAIT_INLINE float round_to_odd(double x) {
  const float f = float(x);
  const uint32_t u = plait_float_bits(f);
  const double error = x - double(f);
  const bool inexact = error != 0 && error == error && (u & 0x7f800000u) != 0x7f800000u;
  // toward zero first: one step back where rounding went away from zero
  const bool away = (error > 0) == ((u >> 31) != 0);
  return plait_float_of_bits(inexact ? (u - (away ? 1 : 0)) | 1 : u);
}

// Eight adjacent elements of a dtype, and one. Compilers cut a conversion from 16 to 32 bits into
// two halves, so that AVX2 gets it by name.

template <class T, class Wide>
PLAIT_INLINE Wide widened(const T *from) {
  typedef T Eight __attribute__((vector_size(8 * sizeof(T)), aligned(sizeof(T)), may_alias));
  return __builtin_convertvector(*reinterpret_cast<const Eight *>(from), Wide);
}

struct Bfloat {
  typedef uint16_t type;
  static PLAIT_INLINE Vec<float> eight(const uint16_t *from) {
#if defined(__AVX2__)
    const __m128i some = _mm_loadu_si128(reinterpret_cast<const __m128i *>(from));
    return Vec<float>(_mm256_slli_epi32(_mm256_cvtepu16_epi32(some), 16));
#else
    return Vec<float>(widened<uint16_t, Vec<uint32_t> >(from) << 16);
#endif
  }
  static PLAIT_INLINE float one(uint16_t x) { return plait_bfloat16_to_float(x); }
  static PLAIT_INLINE uint16_t rounded(float x) { return plait_bfloat16_of_float(x); }
#if defined(__AVX2__)
  static constexpr int64_t kAtOnce = 16;
  static PLAIT_INLINE void narrow(uint16_t *to, const float *from) {
    __m256 x = _mm256_loadu_ps(from), y = _mm256_loadu_ps(from + 8);
    if (PLAIT_UNLIKELY(_mm256_movemask_ps(_mm256_cmp_ps(x, y, _CMP_UNORD_Q))))
      x = short_nans(x), y = short_nans(y);
    const __m256i both = _mm256_packus_epi32(rounded_number(x), rounded_number(y));
    _mm256_storeu_si256(reinterpret_cast<__m256i *>(to), _mm256_permute4x64_epi64(both, 0xd8));
  }

 private:
  // Every NaN with its upper 16 bits alone, and quiet, so that rounding changes none of them.
  static PLAIT_INLINE __m256 short_nans(__m256 x) {
    const __m256i upper = _mm256_and_si256(_mm256_castps_si256(x), _mm256_set1_epi32(-0x10000));
    const __m256i quiet = _mm256_or_si256(upper, _mm256_set1_epi32(0x400000));
    return _mm256_blendv_ps(x, _mm256_castsi256_ps(quiet), _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  }
  static PLAIT_INLINE __m256i rounded_number(__m256 x) {
    const __m256i u = _mm256_castps_si256(x);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
    const __m256i up = _mm256_add_epi32(_mm256_add_epi32(u, _mm256_set1_epi32(0x7fff)), odd);
    return _mm256_srli_epi32(up, 16);
  }
#endif
};

struct Half {
  typedef uint16_t type;
  static PLAIT_INLINE Vec<float> eight(const uint16_t *from) {
#if defined(__F16C__)
    return Vec<float>(_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i *>(from))));
#else
    const Vec<uint32_t> x = widened<uint16_t, Vec<uint32_t> >(from);
    const Vec<uint32_t> size = (x & 0x7fff) << 13, sign = (x & 0x8000) << 16;
    const Vec<float> number = Vec<float>(size) * splat(0x1p112f);  // subnormal ones too
    const Vec<uint32_t> not_finite = Vec<uint32_t>((x & 0x7c00) == 0x7c00) & 0x7f800000;
    const Vec<uint32_t> nan = Vec<uint32_t>((x & 0x7fff) > 0x7c00) & 0x400000;
    return Vec<float>(Vec<uint32_t>(number) | sign | not_finite | nan);
#endif
  }
  static PLAIT_INLINE float one(uint16_t x) { return plait_float16_to_float(x); }
  static PLAIT_INLINE uint16_t rounded(float x) { return plait_float16_of_float(x); }
#if defined(__F16C__)
  static constexpr int64_t kAtOnce = 8;
  static PLAIT_INLINE void narrow(uint16_t *to, const float *from) {
    _mm_storeu_si128(reinterpret_cast<__m128i *>(to),
                     _mm256_cvtps_ph(_mm256_loadu_ps(from), _MM_FROUND_TO_NEAREST_INT));
  }
#endif
};

// Contiguous runs.

template <class H>
PLAIT_INLINE void widen_run(float *to, const typename H::type *from, int64_t n) {
  int64_t i = 0;
  for (; i + 32 <= n; i += 32)
    PLAIT_UNROLL for (int64_t j = 0; j < 32; j += 8) store(to + i + j, H::eight(from + i + j));
  for (; i + 8 <= n; i += 8) store(to + i, H::eight(from + i));
  for (; i < n; i++) to[i] = H::one(from[i]);
}
template <class H>
PLAIT_INLINE void narrow_run(uint16_t *to, const float *from, int64_t n) {
  int64_t i = 0;
#if defined(__AVX2__)
  for (; i + 32 <= n; i += 32)
    PLAIT_UNROLL for (int64_t j = 0; j < 32; j += H::kAtOnce) H::narrow(to + i + j, from + i + j);
#endif
  for (; i < n; i++) to[i] = H::rounded(from[i]);
}

// Adjacent halves as float32: kernels read them as they read elements behind a const float *.
template <class H>
class WidenedRun {
 public:
  explicit WidenedRun(const void *p) : p_(static_cast<const uint16_t *>(p)) {}
  PLAIT_INLINE WidenedRun operator+(int64_t i) const { return WidenedRun(p_ + i); }
  PLAIT_INLINE WidenedRun &operator+=(int64_t i) {
    p_ += i;
    return *this;
  }
  PLAIT_INLINE float operator[](int64_t i) const { return H::one(p_[i]); }
  friend PLAIT_INLINE Vec<float> load(WidenedRun from) { return H::eight(from.p_); }

 private:
  const uint16_t *p_;
};

// The same for a dtype that is known at run time, F16 or BF16, and for halves that are `step`
// elements apart.
void widen(Kind k, float *to, const uint16_t *from, int64_t n, int64_t step = 1);
void narrow(Kind k, uint16_t *to, const float *from, int64_t n, int64_t step = 1);

// Runs the statements with T bound to the type in which elements of kind k are computed.
#define PLAIT_COMPUTED(k, ...)                                             \
  switch (k) {                                                             \
    case F16:                                                              \
    case BF16:                                                             \
      PLAIT_CASE(F32, float, __VA_ARGS__)                                  \
      PLAIT_CASE(F64, double, __VA_ARGS__) default : return PLAIT_DECLINE; \
  }

// The elements of a tensor as numbers of T: those of T itself, or halves if T is float. So a kernel
// for T has one path for both; it brings memory for the numbers of a block. Places are in elements.
template <class T>
class Elements {
 public:
  Elements() = default;
  explicit Elements(const DLTensor *t) : data_(t->data), kind_(kind(t->dtype)) {}
  bool widens() const { return sizeof(T) == 4 && is_half(kind_); }
  // n adjacent elements: where they lie, or in `memory`.
  const T *read(int64_t at, int64_t n, T *memory) const {
    if (!widens()) return static_cast<const T *>(data_) + at;
    get(at, 1, n, memory);
    return memory;
  }
  // f of the elements from `at` on where they lie: of a const T * or a WidenedRun.
  template <class F>
  PLAIT_INLINE auto in_place(int64_t at, F &&f) const {
    if constexpr (sizeof(T) == 4 && (selects(F16) || selects(BF16))) {
      const uint16_t *halves = static_cast<const uint16_t *>(data_) + at;
      if (kind_ == F16) return f(WidenedRun<Half>(halves));
      if (kind_ == BF16) return f(WidenedRun<Bfloat>(halves));
    }
    return f(static_cast<const T *>(data_) + at);
  }
  // Where adjacent results from `at` on are to be put: their place, or `memory`.
  T *place(int64_t at, T *memory) const { return widens() ? memory : static_cast<T *>(data_) + at; }
  // Rounds n results that were put into memory.
  void round(int64_t at, int64_t n, const T *memory) const {
    if (widens()) put(at, 1, n, memory);
  }
  // Copies of n elements that are `step` apart.
  void get(int64_t at, int64_t step, int64_t n, T *to) const {
    if constexpr (sizeof(T) == 4)
      if (widens()) return widen(kind_, to, static_cast<const uint16_t *>(data_) + at, n, step);
    const T *from = static_cast<const T *>(data_) + at;
    for (int64_t i = 0; i < n; i++) to[i] = from[i * step];
  }
  void put(int64_t at, int64_t step, int64_t n, const T *from) const {
    if constexpr (sizeof(T) == 4)
      if (widens()) return narrow(kind_, static_cast<uint16_t *>(data_) + at, from, n, step);
    T *to = static_cast<T *>(data_) + at;
    for (int64_t i = 0; i < n; i++) to[i * step] = from[i];
  }

 private:
  void *data_ = nullptr;
  Kind kind_ = Unknown;
};

// Runs f(begin, end, memory of `size` numbers) in parallel over ranges of about `grain` items.
template <class T, class F>
plait_status parallel_with_memory(const plait_call *c, int64_t n, int64_t grain, int64_t size,
                                  F &&f) {
  bool failed = false;
  const uint64_t bytes = uint64_t(size) * sizeof(T);
  parallel_ranges(c, n, grain, [&](int64_t begin, int64_t end) {
    Workspace space;
    if (size && !space.try_take(bytes)) return __atomic_store_n(&failed, true, __ATOMIC_RELAXED);
    f(begin, end, space.as<T>());
  });
  return failed ? Workspace::out_of_memory(c, bytes) : PLAIT_OK;
}

}  // namespace plait::core
