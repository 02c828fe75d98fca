// Exact products of rows of quantised numbers with int8 weights, by the processor's instructions
// for them. All ways give the same integers.
#pragma once
#include "kernel/kernel.h"

namespace plait::core {

constexpr int64_t kIntegerPanel = 16;  // columns of a panel

// How operands lie for a way of multiplying. A group is 4 bytes of a row, which all columns of a
// panel use at once: 2 numbers of 16 bits, or 4 of 8 bits.
struct IntegerTile {
  int64_t group;  // numbers of a group
  bool offset;  // rows hold q + 128 as uint8; else q as int16
  int64_t rows;  // the most rows whose sums stay in registers
  // c = a b, or c += a b where `add`, for m rows a of `groups` groups, `a_row` bytes apart, and
  // `panels` panels b, `panel` bytes apart, with `ldc` elements from a row of c to the next.
  void (*multiply)(int64_t m, int64_t panels, int64_t groups, const char *a, int64_t a_row,
                   const char *b, int64_t panel, int32_t *c, int64_t ldc, bool add);
};

// The best way on this processor.
const IntegerTile &integer_tile();

// The bytes of a panel of k rows: 16 numbers that its sums begin with, then groups of 64 bytes.
inline int64_t integer_panel_bytes(const IntegerTile &t, int64_t k) {
  return (1 + ceil_div(k, t.group)) * 64;
}
// Packs rows of k weights, `row` elements apart, as the columns of a panel. Columns beyond
// `columns` are zeros.
void pack_integer_panel(const IntegerTile &t, const int8_t *w, int64_t row, int64_t columns,
                        int64_t k, char *to);

// The products of M = 1, 2 or 3 rows of int16 numbers and R = 1 or 4 rows of weights, which are
// read where they lie: sums[i * R + r].
template <int R, int M>
void integer_dots(const int8_t *w, int64_t w_row, const int16_t *a, int64_t a_row, int64_t k,
                  int32_t *sums);

}  // namespace plait::core
