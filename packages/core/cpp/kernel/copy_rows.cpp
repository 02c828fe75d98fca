// Rows of equal length and distance are copied by one call: bytes where both sides are contiguous,
// else elements, from the source to the target without a buffer between them.
#include "kernel/copy_rows.h"

#include "kernel/vec.h"

namespace plait::core {
namespace {

struct Rows {  // `count` rows of `length` elements
  char *to;
  const char *from;
  int64_t count, length;
  int64_t to_row, from_row;    // bytes from a row to the next
  int64_t to_step, from_step;  // bytes from an element to the next
};
using Move = void (*)(const Rows &);

typedef uint8_t Bytes16 __attribute__((vector_size(16)));
typedef uint8_t Bytes32 __attribute__((vector_size(32)));

// Rows of n bytes, from one chunk to two: the first chunk and the last one, which may overlap.
template <class Chunk>
void move_short(const Rows &r, int64_t n) {
  const int64_t last = n - int64_t(sizeof(Chunk)), from_row = r.from_row, to_row = r.to_row;
  const char *from = r.from;
  char *to = r.to;
  for (int64_t i = r.count; i > 0; i--, from += from_row, to += to_row) {
    Chunk a, b;
    memcpy(&a, from, sizeof(Chunk));
    memcpy(&b, from + last, sizeof(Chunk));
    memcpy(to, &a, sizeof(Chunk));
    memcpy(to + last, &b, sizeof(Chunk));
  }
}

// Rows of n > 64 bytes: chunks of 32, the last of which may overlap the one before it.
void move_chunks(const Rows &r, int64_t n) {
  typedef Vec<uint8_t> V;
  const auto at = [](const char *p) { return reinterpret_cast<const uint8_t *>(p); };
  const int64_t from_row = r.from_row, to_row = r.to_row;
  const char *from = r.from;
  char *to = r.to;
  for (int64_t i = r.count; i > 0; i--, from += from_row, to += to_row) {
    uint8_t *own = reinterpret_cast<uint8_t *>(to);
    const V last = load(at(from + n - 32));
    int64_t j = 0;
    for (; j + 128 <= n; j += 128) {
      const V a = load(at(from + j)), b = load(at(from + j + 32)), c = load(at(from + j + 64)),
              d = load(at(from + j + 96));
      store(own + j, a);
      store(own + j + 32, b);
      store(own + j + 64, c);
      store(own + j + 96, d);
    }
    for (; j + 32 < n; j += 32) store(own + j, load(at(from + j)));
    store(own + n - 32, last);
  }
}

template <int item>
void move_contiguous(const Rows &r) {
  constexpr int64_t kMostChunked = 512;  // bytes
  const int64_t n = r.length * item;
  if (n == 1) return move_short<uint8_t>(r, 1);
  if (n <= 4) return move_short<uint16_t>(r, n);
  if (n <= 8) return move_short<uint32_t>(r, n);
  if (n <= 16) return move_short<uint64_t>(r, n);
  if (n <= 32) return move_short<Bytes16>(r, n);
  if (n <= 64) return move_short<Bytes32>(r, n);
  // memcpy is slow on some processors where the target and the source are aligned differently
  const bool apart = (uintptr_t(r.to) - uintptr_t(r.from)) % 32 != 0;
  if (n <= kMostChunked || apart || (r.to_row - r.from_row) % 32 != 0) return move_chunks(r, n);
  for (int64_t i = 0; i < r.count; i++)
    memcpy(r.to + i * r.to_row, r.from + i * r.from_row, size_t(n));
}

// Elements whose steps the compiler knows: in elements, or kAny.
constexpr int64_t kAny = INT64_MIN;
template <class T, int64_t to_step, int64_t from_step>
void move_elements(const Rows &r) {
  const int64_t a = to_step == kAny ? r.to_step : to_step * int64_t(sizeof(T)),
                b = from_step == kAny ? r.from_step : from_step * int64_t(sizeof(T));
  const int64_t length = r.length, to_row = r.to_row, from_row = r.from_row;
  char *to = r.to;
  const char *from = r.from;
  for (int64_t i = r.count; i > 0; i--, to += to_row, from += from_row) {
    if constexpr (from_step == 0) {
      const T value = *reinterpret_cast<const T *>(from);
      for (int64_t j = 0; j < length; j++) *reinterpret_cast<T *>(to + j * a) = value;
    } else {
#pragma GCC ivdep
      for (int64_t j = 0; j < length; j++)
        *reinterpret_cast<T *>(to + j * a) = *reinterpret_cast<const T *>(from + j * b);
    }
  }
}

template <class T>
Move choose(int64_t to_step, int64_t from_step) {
  constexpr int64_t item = int64_t(sizeof(T));
  if (to_step == item) {
    if (from_step == item) return move_contiguous<item>;
    if (from_step == 0) return move_elements<T, 1, 0>;
    if (from_step == -item) return move_elements<T, 1, -1>;
    if (from_step == 2 * item) return move_elements<T, 1, 2>;
    return move_elements<T, 1, kAny>;
  }
  if (from_step == item)
    return to_step == 2 * item ? move_elements<T, 2, 1> : move_elements<T, kAny, 1>;
  return from_step == 0 ? move_elements<T, kAny, 0> : move_elements<T, kAny, kAny>;
}

Move choose(int item, int64_t to_step, int64_t from_step) {
  switch (item) {
    case 1: return choose<uint8_t>(to_step, from_step);
    case 2: return choose<uint16_t>(to_step, from_step);
    case 4: return choose<uint32_t>(to_step, from_step);
    case 8: return choose<uint64_t>(to_step, from_step);
    default: return choose<Bits128>(to_step, from_step);
  }
}

// Elements [begin, end) of the plan: whole rows of the dimension above the last one together.
void copy_range(const Plan &p, Move move, int64_t begin, int64_t end) {
  int64_t at[PLAIT_MAX_DIMS + 1];
  char *q[kMaxOperands];
  const int last = p.ndim - 1, up = last > 0 ? last - 1 : 0;
  const int64_t length = p.size[last];
  p.seek(begin, at, q);
  while (begin < end) {
    const int64_t first = at[last], left = end - begin;
    Rows r{q[0],
           q[1],
           1,
           length - first < left ? length - first : left,
           p.stride[0][up],
           p.stride[1][up],
           p.stride[0][last],
           p.stride[1][last]};
    if (last > 0 && r.length == length) {
      const int64_t whole = left / length, above = p.size[up] - at[up];
      r.count = whole < above ? whole : above;
      at[up] += r.count - 1;
    }
    move(r);
    begin += r.count * r.length;
    if (begin >= end) return;
    for (int k = 0; k < 2; k++) q[k] += (r.count - 1) * p.stride[k][up] - first * p.stride[k][last];
    at[last] = 0;
    p.next_row(at, q);
  }
}

}  // namespace

void move_rows(char *to, int64_t to_row, const char *from, int64_t from_row, int64_t count,
               int64_t bytes) {
  if (bytes > 0) move_contiguous<1>({to, from, count, bytes, to_row, from_row, 1, 1});
}

void copy_rows(const plait_call *c, const Plan &p, int item) {
  const int last = p.ndim - 1;
  const Move move = choose(item, p.stride[0][last], p.stride[1][last]);
  if (p.numel <= kSerial) return copy_range(p, move, 0, p.numel);
  parallel_ranges(c, p.numel, kChunk,
                  [&](int64_t begin, int64_t end) { copy_range(p, move, begin, end); });
}

}  // namespace plait::core
