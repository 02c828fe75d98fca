#include "linalg/tile.h"

#include "kernel/avx512.h"
#include "kernel/past_caches.h"
#include "kernel/transpose.h"
#include "kernel/vec.h"

namespace plait::core {
namespace {

template <class T, int kBytes>
struct Register {
  typedef T type __attribute__((vector_size(kBytes)));
  typedef T unaligned __attribute__((vector_size(kBytes), aligned(sizeof(T)), may_alias));
};

// Convolutions of single elements alone have a summand for each row, a residual, and bounds.
constexpr bool kSelectsBounds =
    any_convolution([](const ConvolutionSizes &v) { return v.window == 1; });

// The terms of a sum: k products, whose factors are `a` and `b` elements apart, in each of the
// rounds, and all rounds again for each of `again`.
struct Way {
  int64_t k, a, b;
  Rounds rounds, again;
  // Memory that is fetched, a line with each product: `left` lines that are `line` bytes apart,
  // then `high` lines from `turn` bytes further on, and so on.
  const char *ahead = nullptr;
  int64_t line = 0, left = 0, high = 0, turn = 0;

  void fetch(const Ahead &a) {
    ahead = a.next();
    line = a.apart;
    left = a.high - a.done;
    high = a.high;
    turn = Ahead::kLine - a.high * a.apart;
  }
  void fetch_only(const void *p) {
    ahead = static_cast<const char *>(p);
    line = turn = 0;
    left = high = int64_t(1) << 62;
  }
};

// R rows of C adjacent registers, of panels of b that are `apart` elements apart. Loops over rows
// and registers are unrolled early, or compilers keep the sums in memory around the loop over k. A
// row's address is one of every third row, which the compiler is not to know more about, plus a
// multiple of the distance of rows: else it keeps a pointer for each row, more than there are
// registers.
template <class T, int kBytes, int R, int C>
PLAIT_INLINE void square(const Way &way, const T *a, int64_t rows, const T *b, int64_t apart, T *c,
                         int64_t ldc, const Finish<T> &finish) {
  typedef typename Register<T, kBytes>::type Wide;
  typedef typename Register<T, kBytes>::unaligned Unaligned;
  constexpr int64_t w = kBytes / int64_t(sizeof(T));
  constexpr int kThird = (R + 2) / 3, kInPanel = 64 / kBytes;
  Wide sum[R][C];
  const T *near = finish.past ? b : c;
  const int64_t pitch = finish.past ? 0 : ldc;
  PLAIT_UNROLL for (int r = 0; r < R; r++) {
    PLAIT_UNROLL for (int v = 0; v < C; v++) {
      sum[r][v] = Wide{};
      __builtin_prefetch(near + r * pitch + v * w, 1);
    }
  }
  if constexpr (kSelectsBounds) {
    if (const T *more = finish.residual) {
      PLAIT_UNROLL for (int r = 0; r < R; r++, more += finish.apart) {
        PLAIT_UNROLL for (int v = 0; v < C; v += kInPanel) __builtin_prefetch(more + v * w);
      }
    }
  }
  const int64_t k = way.k, columns = way.a, step = way.b, line = way.line;
  const char *ahead = way.ahead;
  int64_t left = way.left;
  for (int64_t s = 0; s < way.again.count; s++) {
    for (int64_t q = 0; q < way.rounds.count; q++) {
      const T *x[kThird], *y = b + s * way.again.b + q * way.rounds.b;
      PLAIT_UNROLL for (int g = 0; g < kThird; g++) {
        x[g] = a + s * way.again.a + q * way.rounds.a + 3 * g * rows;
        asm("" : "+r"(x[g]));
      }
      for (int64_t l = 0; l < k;) {
        const int64_t stop = l + left < k ? l + left : k;  // no test of lines within the loop
        left -= stop - l;
        for (; l < stop; l++, y += step) {
          Wide wide[C];
          PLAIT_UNROLL for (int v = 0; v < C; v++) {
            wide[v] =
                *reinterpret_cast<const Unaligned *>(y + v / kInPanel * apart + v % kInPanel * w);
          }
          PLAIT_UNROLL for (int r = 0; r < R; r++) {
            const Wide factor = x[r / 3][r % 3 * rows] - Wide{};
            PLAIT_UNROLL for (int v = 0; v < C; v++) {
              sum[r][v] = fused(factor, wide[v], sum[r][v]);
            }
          }
          PLAIT_UNROLL for (int g = 0; g < kThird; g++) { x[g] += columns; }
          __builtin_prefetch(ahead, 0, 2);
          ahead += line;
        }
        if (left == 0) {
          ahead += way.turn;
          left = way.high;
        }
      }
    }
  }
  if (const T *old = finish.old) {
    PLAIT_UNROLL for (int r = 0; r < R; r++, old += finish.pitch) {
      PLAIT_UNROLL for (int v = 0; v < C; v++) {
        sum[r][v] = *reinterpret_cast<const Unaligned *>(old + v * w) + sum[r][v];
      }
    }
  }
  if constexpr (kSelectsBounds) {
    // A sum with a summand that is not -0 is not -0 either, so `zero` is added to the summand.
    const T zero = finish.bounded ? finish.zero : T(-0.0);
    const T *shift = finish.shift ? finish.shift : &zero;
    const int64_t next = finish.shift ? finish.step : 0;
    if (finish.shift || finish.bounded) {
      PLAIT_UNROLL for (int r = 0; r < R; r++, shift += next) {
        const Wide all = (*shift + zero) - Wide{};  // -0 stays -0
        PLAIT_UNROLL for (int v = 0; v < C; v++) { sum[r][v] += all; }
      }
    }
    if (const T *more = finish.residual) {
      PLAIT_UNROLL for (int r = 0; r < R; r++, more += finish.apart) {
        PLAIT_UNROLL for (int v = 0; v < C; v++) {
          sum[r][v] += *reinterpret_cast<const Unaligned *>(more + v * w);
        }
      }
    }
    if (finish.bounded) {
      const Wide low = finish.low - Wide{}, high = finish.high - Wide{};
      PLAIT_UNROLL for (int r = 0; r < R; r++) {
        PLAIT_UNROLL for (int v = 0; v < C; v++) {
          const Wide value = sum[r][v], x = value < low ? low : value;
          sum[r][v] = x > high ? high : x;
        }
      }
    }
  }
  if constexpr (kSelectsBounds) {
    if (finish.past) {
      PLAIT_UNROLL for (int r = 0; r < R; r++) {
        PLAIT_UNROLL for (int v = 0; v < C; v++) {
          store_past_aligned<T>(c + r * ldc + v * w, sum[r][v]);
        }
      }
      return;
    }
  }
  PLAIT_UNROLL for (int r = 0; r < R; r++) {
    PLAIT_UNROLL for (int v = 0; v < C; v++) {
      *reinterpret_cast<Unaligned *>(c + r * ldc + v * w) = sum[r][v];
    }
  }
}

template <class T>
using Square = void (*)(const Way &, const T *, int64_t, const T *, int64_t, T *, int64_t,
                        const Finish<T> &);

// The functions of an instruction set for squares of each number of rows.
template <class T>
struct Squares {
  int64_t rows, panels;  // the largest numbers of rows and of adjacent panels
  Square<T> of[2][13];  // by panels - 1 and rows
  Square<T> few[4];  // kPanelsFew adjacent panels by rows, where there are such functions
};

// Each sum waits for its last product: few rows have enough sums only in more panels.
constexpr int kPanelsFew = 4;

#if defined(__AVX2__)
constexpr int kShort = 32;
#else
constexpr int kShort = 16;  // compilers keep vectors that no register holds in memory
#endif
// Largest number of rows whose sums fit into the registers, of which Arm has twice as many.
#if defined(__AVX2__)
constexpr int kRowsShort = 6;
#elif defined(__aarch64__)
constexpr int kRowsShort = 5;
#else
constexpr int kRowsShort = 3;
#endif
template <class T, int R, int P>
PLAIT_NOINLINE void square_short(const Way &way, const T *a, int64_t rows, const T *b,
                                 int64_t apart, T *c, int64_t ldc, const Finish<T> &finish) {
  square<T, kShort, R, P * (64 / kShort)>(way, a, rows, b, apart, c, ldc, finish);
}
template <class T>
constexpr Squares<T> kSquaresShort = {
    kRowsShort,
    1,
    {{nullptr, square_short<T, 1, 1>, square_short<T, 2, 1>, square_short<T, 3, 1>,
      square_short<T, 4, 1>, square_short<T, 5, 1>, square_short<T, 6, 1>}},
#if defined(__AVX2__) || defined(__aarch64__)
    {nullptr, square_short<T, 1, kPanelsFew>},
#else
    {},
#endif
};

#if defined(__AVX2__) && defined(__x86_64__)
// The same sums in the same order in the registers of AVX-512: the bits do not differ. A panel is
// one of them.
template <class T, int R, int P>
__attribute__((noinline, target("avx512f,prfchw"))) void square_64(const Way &way, const T *a,
                                                                   int64_t rows, const T *b,
                                                                   int64_t apart, T *c, int64_t ldc,
                                                                   const Finish<T> &finish) {
  square<T, 64, R, P>(way, a, rows, b, apart, c, ldc, finish);
}
#define PLAIT_ROWS_64(P) \
  {nullptr,              \
   square_64<T, 1, P>,   \
   square_64<T, 2, P>,   \
   square_64<T, 3, P>,   \
   square_64<T, 4, P>,   \
   square_64<T, 5, P>,   \
   square_64<T, 6, P>,   \
   square_64<T, 7, P>,   \
   square_64<T, 8, P>,   \
   square_64<T, 9, P>,   \
   square_64<T, 10, P>,  \
   square_64<T, 11, P>,  \
   square_64<T, 12, P>}
template <class T>
constexpr Squares<T> kSquares64 = {12,
                                   2,
                                   {PLAIT_ROWS_64(1), PLAIT_ROWS_64(2)},
                                   {nullptr, square_64<T, 1, kPanelsFew>,
                                    square_64<T, 2, kPanelsFew>, square_64<T, 3, kPanelsFew>}};

template <class T>
const Squares<T> &squares() {
  return has_avx512() ? kSquares64<T> : kSquaresShort<T>;
}
#else
template <class T>
const Squares<T> &squares() {
  return kSquaresShort<T>;
}
#endif

// m x n results by squares, with groups of rows of about equal size: in a group of two rows each
// sum would wait for the one before. A group's rows of a stay in the first-level cache, and the
// panels of b come from the second.
template <class T>
void squares_of(int64_t m, int64_t n, Way &way, const T *a, int64_t rows, Panels<T> b, T *c,
                int64_t ldc, const Finish<T> &finish, Ahead &ahead) {
  const Squares<T> &best = squares<T>();
  const int64_t groups = ceil_div(m, best.rows), each = m / groups, larger = m % groups;
  way.fetch_only(a);
  for (int64_t g = 0, i = 0; g < groups; g++) {
    const int64_t height = each + (g < larger);
    const Square<T> few = height < 4 ? best.few[height] : nullptr;
    for (int64_t j = 0; j < n;) {
      const int64_t left = (n - j) / kPanel<T>;
      const int64_t beside = few && left >= kPanelsFew ? kPanelsFew
                             : left < best.panels      ? 1
                                                       : best.panels;
      const Square<T> best_of = beside == kPanelsFew ? few : best.of[beside - 1][height];
      if (ahead.across) {
        way.fetch(ahead);
        ahead.skip(way.k * way.rounds.count * way.again.count);
      } else if (way.line) {
        way.fetch_only(a);
      }
      best_of(way, a + i * rows, rows, b.data + j / kPanel<T> * b.panel, b.panel, c + i * ldc + j,
              ldc, finish.at(i, j));
      j += beside * kPanel<T>;
    }
    i += height;
  }
}

}  // namespace

template <class T>
void multiply_rounds(int64_t m, int64_t n, int64_t k, Rounds rounds, Rounds again, Matrix<T> a,
                     Panels<T> b, T *c, int64_t ldc, const Finish<T> &finish, Ahead *ahead) {
  if (m == 0) return;
  Ahead none;
  bool first = true;
  const int64_t many = rounds_at_once<T>(rounds.count, k);
  const int64_t whole = many < rounds.count ? 1 : rounds_at_once<T>(again.count, rounds.count * k);
  for (int64_t s = 0; s < again.count || s == 0; s += whole)
    for (int64_t q = 0; q < rounds.count || q == 0; q += many)
      for (int64_t l = 0; l < k || l == 0; l += kDepth<T>, first = false) {
        Way way{k - l < kDepth<T> ? k - l : kDepth<T>,
                a.columns,
                b.row,
                {rounds.count - q < many ? rounds.count - q : many, rounds.a, rounds.b},
                {again.count - s < whole ? again.count - s : whole, again.a, again.b}};
        const int64_t from = s * again.b + q * rounds.b + l * b.row;
        const bool last =
            l + kDepth<T> >= k && q + many >= rounds.count && s + whole >= again.count;
        squares_of(m, n, way, a.data + s * again.a + q * rounds.a + l * a.columns, a.rows,
                   Panels<T>{b.data + from, b.panel, b.row}, c, ldc,
                   finish.of_block(first, last, c, ldc), ahead ? *ahead : none);
      }
}

template <class T>
void multiply_tile(int64_t m, int64_t n, int64_t k, Matrix<T> a, Panels<T> b, T *c, int64_t ldc,
                   const Finish<T> &finish, Ahead *ahead) {
  multiply_rounds(m, n, k, {1, 0, 0}, {1, 0, 0}, a, b, c, ldc, finish, ahead);
}

template <class T>
int64_t tile_rows() {
  return squares<T>().rows;
}

// Whole panels of contiguous rows, side by side, so that lines are read in the order in which they
// lie. Later rows are prefetched, as they may be on other pages.
template <class T>
void copy_panels(const T *from, int64_t apart, int64_t rows, int64_t panels, T *to) {
  constexpr int64_t w = kPanel<T>, half = kLanes<T>, kAhead = 8;
  for (int64_t l = 0; l < rows; l++, from += apart, to += w) {
    const int64_t ahead = l + kAhead < rows ? kAhead * apart : 0;
    for (int64_t p = 0; p < panels; p++) {
      __builtin_prefetch(from + p * w + ahead);
      store(to + p * rows * w, load(from + p * w));
      store(to + p * rows * w + half, load(from + p * w + half));
    }
  }
}

template <class T>
void pack_panels(Matrix<T> a, int64_t rows, int64_t columns, T *to) {
  constexpr int64_t w = kPanel<T>, kBeside = 4;
  int64_t done = 0;
  if (a.columns == 1)
    while (done + w <= columns) {
      const int64_t left = (columns - done) / w, panels = left < kBeside ? left : kBeside;
      copy_panels(a.data + done, a.rows, rows, panels, to);
      done += panels * w;
      to += panels * rows * w;
    }
  for (int64_t j = done; j < columns; j += w, to += rows * w) {
    const int64_t wide = columns - j < w ? columns - j : w;
    const Matrix<T> from = a.at(0, j);
    if (a.rows == 1 && wide == w) {
      transpose_block(reinterpret_cast<char *>(to), w, reinterpret_cast<const char *>(from.data),
                      a.columns, w, rows, sizeof(T));
      continue;
    }
    for (int64_t l = 0; l < rows; l++)
      for (int64_t i = 0; i < w; i++)
        to[l * w + i] = i < wide ? from.data[l * a.rows + i * a.columns] : T(0);
  }
}

template <class T>
void pack_rows(Matrix<T> a, int64_t rows, int64_t columns, int64_t width, T factor, T *to) {
  for (int64_t i = 0; i < rows; i++, to += width) {
    const T *from = a.data + i * a.rows;
    if (a.columns == 1)
      for (int64_t j = 0; j < columns; j++) to[j] = from[j] * factor;
    else
      for (int64_t j = 0; j < columns; j++) to[j] = from[j * a.columns] * factor;
    for (int64_t j = columns; j < width; j++) to[j] = T(0);
  }
}

#define PLAIT_INSTANCE(T)                                                                        \
  template int64_t tile_rows<T>();                                                               \
  template void multiply_rounds(int64_t, int64_t, int64_t, Rounds, Rounds, Matrix<T>, Panels<T>, \
                                T *, int64_t, const Finish<T> &, Ahead *);                       \
  template void multiply_tile(int64_t, int64_t, int64_t, Matrix<T>, Panels<T>, T *, int64_t,     \
                              const Finish<T> &, Ahead *);                                       \
  template void pack_panels(Matrix<T>, int64_t, int64_t, T *);                                   \
  template void pack_rows(Matrix<T>, int64_t, int64_t, int64_t, T, T *);
PLAIT_INSTANCE(float)
PLAIT_INSTANCE(double)

}  // namespace plait::core
