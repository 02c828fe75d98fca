#include "kernel/transpose.h"

#include "kernel/lanes.h"

namespace plait::core {
namespace {

typedef uint32_t Row8 __attribute__((vector_size(32), aligned(4), may_alias));

// An 8 x 8 square of 4-byte elements in registers.
PLAIT_INLINE void transpose_8x8(uint32_t *to, int64_t to_step, const uint32_t *from,
                                int64_t from_step) {
  Vec<uint32_t> a[8];
  for (int i = 0; i < 8; i++) a[i] = load(from + i * from_step);
  transpose_square<uint32_t>(a);
  for (int i = 0; i < 8; i++) store(to + i * to_step, a[i]);
}

template <class T>
PLAIT_INLINE void transpose_edge(T *to, int64_t to_step, const T *from, int64_t from_step,
                                 int64_t rows, int64_t columns) {
  for (int64_t c = 0; c < columns; c++)
    for (int64_t r = 0; r < rows; r++) to[r + c * to_step] = from[r * from_step + c];
}

template <class T>
void transpose_items(T *to, int64_t to_step, const T *from, int64_t from_step, int64_t rows,
                     int64_t columns) {
  constexpr int64_t kSide = 16;  // a square of this side stays in the first-level cache
  for (int64_t r = 0; r < rows; r += kSide)
    for (int64_t c = 0; c < columns; c += kSide)
      transpose_edge(to + r + c * to_step, to_step, from + r * from_step + c, from_step,
                     rows - r < kSide ? rows - r : kSide,
                     columns - c < kSide ? columns - c : kSide);
}

typedef uint8_t Row16 __attribute__((vector_size(16), aligned(1), may_alias));

// A block of 8 x 16 bytes: three rounds that interleave rows i and i + 4, which the registers hold.
PLAIT_INLINE void transpose_8x16(uint8_t *to, int64_t to_step, const uint8_t *from,
                                 int64_t from_step) {
  Row16 a[8], b[8];
  for (int i = 0; i < 8; i++) a[i] = *reinterpret_cast<const Row16 *>(from + i * from_step);
  PLAIT_UNROLL for (int round = 0; round < 3; round++) {
    PLAIT_UNROLL for (int i = 0; i < 4; i++) {
      b[2 * i] = shuffled<0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23>(a[i], a[i + 4]);
      b[2 * i + 1] =
          shuffled<8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31>(a[i], a[i + 4]);
    }
    PLAIT_UNROLL for (int i = 0; i < 8; i++) a[i] = b[i];
  }
  for (int i = 0; i < 8; i++) {  // two columns each
    memcpy(to + 2 * i * to_step, &a[i], 8);
    memcpy(to + (2 * i + 1) * to_step, reinterpret_cast<const char *>(&a[i]) + 8, 8);
  }
}

void transpose_bytes(uint8_t *to, int64_t to_step, const uint8_t *from, int64_t from_step,
                     int64_t rows, int64_t columns) {
  const int64_t whole_rows = rows & ~7, whole_columns = columns & ~15;
  for (int64_t c = 0; c < whole_columns; c += 16)
    for (int64_t r = 0; r < whole_rows; r += 8)
      transpose_8x16(to + r + c * to_step, to_step, from + r * from_step + c, from_step);
  transpose_items(to + whole_rows, to_step, from + whole_rows * from_step, from_step,
                  rows - whole_rows, columns);
  transpose_items(to + whole_columns * to_step, to_step, from + whole_columns, from_step,
                  whole_rows, columns - whole_columns);
}

// Pictures of three channels: planes whose elements come to lie side by side.
void join_three(uint32_t *to, const uint32_t *from, int64_t from_step, int64_t columns) {
  const int64_t whole = columns & ~7;
  const uint32_t *second = from + from_step, *third = second + from_step;
  for (int64_t c = 0; c < whole; c += 8) {
    const Row8 x = *reinterpret_cast<const Row8 *>(from + c);
    const Row8 y = *reinterpret_cast<const Row8 *>(second + c);
    const Row8 z = *reinterpret_cast<const Row8 *>(third + c);
    const Row8 a = shuffled<0, 8, 0, 1, 9, 1, 2, 10>(x, y);
    const Row8 b = shuffled<3, 3, 11, 4, 4, 12, 5, 5>(x, y);
    const Row8 d = shuffled<13, 6, 6, 14, 7, 7, 15, 7>(x, y);
    Row8 *own = reinterpret_cast<Row8 *>(to + 3 * c);
    own[0] = shuffled<0, 1, 8, 3, 4, 9, 6, 7>(a, z);
    own[1] = shuffled<10, 1, 2, 11, 4, 5, 12, 7>(b, z);
    own[2] = shuffled<0, 13, 2, 3, 14, 5, 6, 15>(d, z);
  }
  transpose_edge(to + 3 * whole, 3, from + whole, from_step, 3, columns - whole);
}

// The other way round.
void part_three(uint32_t *to, int64_t to_step, const uint32_t *from, int64_t rows) {
  const int64_t whole = rows & ~7;
  for (int64_t r = 0; r < whole; r += 8) {
    const Row8 *own = reinterpret_cast<const Row8 *>(from + 3 * r);
    const Row8 a = own[0], b = own[1], d = own[2];  // elements 0 to 7, 8 to 15 and 16 to 23
    *reinterpret_cast<Row8 *>(to + r) =
        shuffled<0, 1, 2, 3, 4, 5, 10, 13>(shuffled<0, 3, 6, 9, 12, 15, 0, 0>(a, b), d);
    *reinterpret_cast<Row8 *>(to + to_step + r) =
        shuffled<0, 1, 2, 3, 4, 8, 11, 14>(shuffled<1, 4, 7, 10, 13, 0, 0, 0>(a, b), d);
    *reinterpret_cast<Row8 *>(to + 2 * to_step + r) =
        shuffled<0, 1, 2, 3, 4, 9, 12, 15>(shuffled<2, 5, 8, 11, 14, 0, 0, 0>(a, b), d);
  }
  transpose_edge(to + whole, to_step, from + 3 * whole, 3, rows - whole, 3);
}

void transpose_words(uint32_t *to, int64_t to_step, const uint32_t *from, int64_t from_step,
                     int64_t rows, int64_t columns) {
  if (rows == 3 && to_step == 3) return join_three(to, from, from_step, columns);
  if (columns == 3 && from_step == 3) return part_three(to, to_step, from, rows);
  const int64_t whole_rows = rows & ~7, whole_columns = columns & ~7;
  for (int64_t c = 0; c < whole_columns; c += 8)
    for (int64_t r = 0; r < whole_rows; r += 8)
      transpose_8x8(to + r + c * to_step, to_step, from + r * from_step + c, from_step);
  transpose_edge(to + whole_rows, to_step, from + whole_rows * from_step, from_step,
                 rows - whole_rows, columns);
  transpose_edge(to + whole_columns * to_step, to_step, from + whole_columns, from_step, whole_rows,
                 columns - whole_columns);
}

}  // namespace

void transpose_block(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t rows,
                     int64_t columns, int item) {
#define PLAIT_ITEMS(type)                                                                      \
  transpose_items(reinterpret_cast<type *>(to), to_step, reinterpret_cast<const type *>(from), \
                  from_step, rows, columns)
  switch (item) {
    case 1:
      return transpose_bytes(reinterpret_cast<uint8_t *>(to), to_step,
                             reinterpret_cast<const uint8_t *>(from), from_step, rows, columns);
    case 2: return PLAIT_ITEMS(uint16_t);
    case 4:
      return transpose_words(reinterpret_cast<uint32_t *>(to), to_step,
                             reinterpret_cast<const uint32_t *>(from), from_step, rows, columns);
    case 8: return PLAIT_ITEMS(uint64_t);
    default: return PLAIT_ITEMS(Bits128);
  }
#undef PLAIT_ITEMS
}

}  // namespace plait::core
