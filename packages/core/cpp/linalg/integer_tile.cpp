#include "linalg/integer_tile.h"

#include <cstdlib>

#include "kernel/avx512.h"
#include "kernel/transpose.h"
#include "kernel/vec.h"
#include "linalg/tile.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif
// Instructions beyond the flags of this file are written in assembly, which GCC accepts in
// functions that are inlined into others with the right target.
#if defined(__AVX2__) && defined(__x86_64__) && !defined(__clang__) && __GNUC__ >= 11
#define PLAIT_VNNI 1
#else
#define PLAIT_VNNI 0
#endif

namespace plait::core {
namespace {

template <class T, int kBytes>
struct Register {
  typedef T type __attribute__((vector_size(kBytes), may_alias));
  typedef T unaligned __attribute__((vector_size(kBytes), aligned(4), may_alias));
};

#if defined(__AVX2__)
constexpr int kShort = 32;
#else
constexpr int kShort = 16;
#endif

// Products of two int16 numbers in each lane, which are added. |q * w| is at most 127 * 128, so
// that no sum of two leaves 32 bits, and no instruction that saturates is used.
struct Pairs {
  static constexpr int kBytes = kShort;
  typedef Register<int32_t, kShort>::type Sums;
  static PLAIT_INLINE Sums step(Sums sum, Sums a, Sums b) {
#if defined(__AVX2__)
    return sum + Sums(_mm256_madd_epi16(__m256i(a), __m256i(b)));
#elif defined(__SSE2__)
    return sum + Sums(_mm_madd_epi16(__m128i(a), __m128i(b)));
#else
    return sum + (a << 16 >> 16) * (b << 16 >> 16) + (a >> 16) * (b >> 16);
#endif
  }
};

#if PLAIT_VNNI
// Four products of uint8 and int8 numbers in each lane.
struct Quads512 {
  static constexpr int kBytes = 64;
  typedef Register<int32_t, 64>::type Sums;
  static PLAIT_INLINE Sums step(Sums sum, Sums a, Sums b) {
    asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
    return sum;
  }
};
struct Quads256 {
  static constexpr int kBytes = 32;
  typedef Register<int32_t, 32>::type Sums;
  static PLAIT_INLINE Sums step(Sums sum, Sums a, Sums b) {
    asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(a), "x"(b));
    return sum;
  }
};
#endif

// R rows and P panels of results. The first 64 bytes of a panel are what its sums begin with.
template <class S, int R, int P>
PLAIT_INLINE void square(int64_t groups, const char *a, int64_t a_row, const char *b, int64_t panel,
                         int32_t *c, int64_t ldc, bool add) {
  typedef typename S::Sums Sums;
  typedef typename Register<int32_t, S::kBytes>::unaligned Unaligned;
  constexpr int kEach = 64 / S::kBytes, C = P * kEach, w = S::kBytes / 4;
  Sums sum[R][C];
  PLAIT_UNROLL for (int r = 0; r < R; r++) {
    PLAIT_UNROLL for (int v = 0; v < C; v++) {
      const char *from = b + v / kEach * panel + v % kEach * S::kBytes;
      sum[r][v] = *reinterpret_cast<const Unaligned *>(from);
      if (add) sum[r][v] += *reinterpret_cast<const Unaligned *>(c + r * ldc + v * w);
    }
  }
  for (int64_t g = 0; g < groups; g++, a += 4) {
    b += 64;
    Sums wide[C];
    PLAIT_UNROLL for (int v = 0; v < C; v++) {
      const char *from = b + v / kEach * panel + v % kEach * S::kBytes;
      wide[v] = *reinterpret_cast<const Unaligned *>(from);
    }
    PLAIT_UNROLL for (int r = 0; r < R; r++) {
      int32_t four;
      memcpy(&four, a + r * a_row, 4);
      const Sums factor = four - Sums{};
      PLAIT_UNROLL for (int v = 0; v < C; v++) { sum[r][v] = S::step(sum[r][v], factor, wide[v]); }
    }
  }
  PLAIT_UNROLL for (int r = 0; r < R; r++) {
    PLAIT_UNROLL for (int v = 0; v < C; v++) {
      *reinterpret_cast<Unaligned *>(c + r * ldc + v * w) = sum[r][v];
    }
  }
}

typedef void (*Square)(int64_t, const char *, int64_t, const char *, int64_t, int32_t *, int64_t,
                       bool);

// All results, by squares of about equal height. `of` has those of one and of two panels by rows.
PLAIT_INLINE void squares(const Square (*of)[13], int64_t rows, int64_t most, int64_t m,
                          int64_t panels, int64_t groups, const char *a, int64_t a_row,
                          const char *b, int64_t panel, int32_t *c, int64_t ldc, bool add) {
  const int64_t parts = ceil_div(m, rows), each = m / (parts < 1 ? 1 : parts);
  const int64_t larger = m - parts * each;
  for (int64_t part = 0, i = 0; part < parts; part++) {
    const int64_t height = each + (part < larger);
    for (int64_t j = 0; j < panels;) {
      const int64_t beside = panels - j < most ? 1 : most;
      of[beside - 1][height](groups, a + i * a_row, a_row, b + j * panel, panel,
                             c + i * ldc + j * kIntegerPanel, ldc, add);
      j += beside;
    }
    i += height;
  }
}

#define PLAIT_SQUARE(name, S, R, P, target)                                           \
  target void name##R##P(int64_t groups, const char *a, int64_t a_row, const char *b, \
                         int64_t panel, int32_t *c, int64_t ldc, bool add) {          \
    square<S, R, P>(groups, a, a_row, b, panel, c, ldc, add);                         \
  }
#define PLAIT_TILE(name, rows, most, ...)                                            \
  void name(int64_t m, int64_t panels, int64_t groups, const char *a, int64_t a_row, \
            const char *b, int64_t panel, int32_t *c, int64_t ldc, bool add) {       \
    static const Square of[2][13] = __VA_ARGS__;                                     \
    squares(of, rows, most, m, panels, groups, a, a_row, b, panel, c, ldc, add);     \
  }

// Rows of a tile: with AVX2 6 rows of two registers; with fewer registers less.
#define PLAIT_PLAIN __attribute__((noinline))
PLAIT_SQUARE(pairs, Pairs, 1, 1, PLAIT_PLAIN)
PLAIT_SQUARE(pairs, Pairs, 2, 1, PLAIT_PLAIN)
PLAIT_SQUARE(pairs, Pairs, 3, 1, PLAIT_PLAIN)
#if defined(__AVX2__)
PLAIT_SQUARE(pairs, Pairs, 4, 1, PLAIT_PLAIN)
PLAIT_SQUARE(pairs, Pairs, 5, 1, PLAIT_PLAIN)
PLAIT_SQUARE(pairs, Pairs, 6, 1, PLAIT_PLAIN)
constexpr int64_t kRowsOfPairs = 6;
PLAIT_TILE(multiply_pairs, kRowsOfPairs, 1,
           {{nullptr, pairs11, pairs21, pairs31, pairs41, pairs51, pairs61}})
#else
constexpr int64_t kRowsOfPairs = 3;
PLAIT_TILE(multiply_pairs, kRowsOfPairs, 1, {{nullptr, pairs11, pairs21, pairs31}})
#endif

#if PLAIT_VNNI
#define PLAIT_512 __attribute__((noinline, target("avx512f,avx512vnni")))
#define PLAIT_256 __attribute__((noinline, target("avxvnni")))
#define PLAIT_TWELVE(X, P) \
  X(1, P) X(2, P) X(3, P) X(4, P) X(5, P) X(6, P) X(7, P) X(8, P) X(9, P) X(10, P) X(11, P) X(12, P)
#define PLAIT_QUADS_512(R, P) PLAIT_SQUARE(quads512_, Quads512, R, P, PLAIT_512)
PLAIT_TWELVE(PLAIT_QUADS_512, 1)
PLAIT_TWELVE(PLAIT_QUADS_512, 2)
#define PLAIT_ADDRESS(R, P) , quads512_##R##P
PLAIT_TILE(multiply_quads_512, 12, 2,
           {{nullptr PLAIT_TWELVE(PLAIT_ADDRESS, 1)}, {nullptr PLAIT_TWELVE(PLAIT_ADDRESS, 2)}})
PLAIT_SQUARE(quads256_, Quads256, 1, 1, PLAIT_256)
PLAIT_SQUARE(quads256_, Quads256, 2, 1, PLAIT_256)
PLAIT_SQUARE(quads256_, Quads256, 3, 1, PLAIT_256)
PLAIT_SQUARE(quads256_, Quads256, 4, 1, PLAIT_256)
PLAIT_SQUARE(quads256_, Quads256, 5, 1, PLAIT_256)
PLAIT_SQUARE(quads256_, Quads256, 6, 1, PLAIT_256)
PLAIT_TILE(multiply_quads_256, 6, 1,
           {{nullptr, quads256_11, quads256_21, quads256_31, quads256_41, quads256_51,
             quads256_61}})

const IntegerTile kQuads512 = {4, true, 12, multiply_quads_512};
const IntegerTile kQuads256 = {4, true, 6, multiply_quads_256};
#endif
const IntegerTile kPairs = {2, false, kRowsOfPairs, multiply_pairs};

const IntegerTile &choose() {
#if PLAIT_VNNI
  const char *level = getenv("PLAIT_CPU");
  if (has_avx512() && __builtin_cpu_supports("avx512vnni")) return kQuads512;
  if (!(level && strcmp(level, "avx2") == 0) && __builtin_cpu_supports("avxvnni")) return kQuads256;
#endif
  return kPairs;
}

}  // namespace

const IntegerTile &integer_tile() {
  static const IntegerTile &tile = choose();
  return tile;
}

void pack_integer_panel(const IntegerTile &t, const int8_t *w, int64_t row, int64_t columns,
                        int64_t k, char *to) {
  constexpr int64_t kSome = 128;  // groups that are laid out before they are transposed
  const int64_t groups = ceil_div(k, t.group);
  int32_t *first = reinterpret_cast<int32_t *>(to);
  memset(first, 0, 64);
  alignas(64) int32_t rows[kIntegerPanel][kSome];
  for (int64_t g = 0; g < groups; g += kSome) {
    const int64_t some = groups - g < kSome ? groups - g : kSome, l = g * t.group;
    const int64_t depth = k - l < some * t.group ? k - l : some * t.group;
    for (int64_t i = 0; i < kIntegerPanel; i++) {
      rows[i][some - 1] = 0;
      if (i >= columns) {
        memset(rows[i], 0, size_t(some) * 4);
      } else if (t.offset) {
        const int8_t *from = w + i * row + l;
        int32_t sum = 0;
        for (int64_t d = 0; d < depth; d++) sum += from[d];
        first[i] -= 128 * sum;  // (q + 128) w - 128 w
        memcpy(rows[i], from, size_t(depth));
      } else {
        const int8_t *from = w + i * row + l;
        int16_t wide[2 * kSome];
        for (int64_t d = 0; d < depth; d++) wide[d] = from[d];
        memcpy(rows[i], wide, size_t(depth) * 2);
      }
    }
    transpose_block(to + 64 + g * 64, kIntegerPanel, reinterpret_cast<const char *>(rows), kSome,
                    kIntegerPanel, some, 4);
  }
}

template <int R, int M>
void integer_dots(const int8_t *w, int64_t w_row, const int16_t *a, int64_t a_row, int64_t k,
                  int32_t *sums) {
  for (int s = 0; s < R * M; s++) sums[s] = 0;
  int64_t l = 0;
#if defined(__AVX2__)
  Vec<int32_t> acc[R][M] = {};
  for (; l + 16 <= k; l += 16) {
    __m256i row[M];
    for (int i = 0; i < M; i++)
      row[i] = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(a + i * a_row + l));
    for (int r = 0; r < R; r++) {
      const __m256i weights = _mm256_cvtepi8_epi16(
          _mm_loadu_si128(reinterpret_cast<const __m128i *>(w + r * w_row + l)));
      for (int i = 0; i < M; i++) acc[r][i] += Vec<int32_t>(_mm256_madd_epi16(weights, row[i]));
    }
  }
  for (int r = 0; r < R; r++)
    for (int i = 0; i < M; i++) sums[i * R + r] = sum_of<int32_t>(acc[r][i]);
#endif
  for (int r = 0; r < R; r++)
    for (int i = 0; i < M; i++)
      for (int64_t j = l; j < k; j++)
        sums[i * R + r] += int32_t(w[r * w_row + j]) * a[i * a_row + j];
}

template void integer_dots<1, 1>(const int8_t *, int64_t, const int16_t *, int64_t, int64_t,
                                 int32_t *);
template void integer_dots<1, 2>(const int8_t *, int64_t, const int16_t *, int64_t, int64_t,
                                 int32_t *);
template void integer_dots<1, 3>(const int8_t *, int64_t, const int16_t *, int64_t, int64_t,
                                 int32_t *);
template void integer_dots<4, 1>(const int8_t *, int64_t, const int16_t *, int64_t, int64_t,
                                 int32_t *);
template void integer_dots<4, 2>(const int8_t *, int64_t, const int16_t *, int64_t, int64_t,
                                 int32_t *);
template void integer_dots<4, 3>(const int8_t *, int64_t, const int16_t *, int64_t, int64_t,
                                 int32_t *);

}  // namespace plait::core
