// sort and topk along one dimension: always stable, nan counts as the largest number. Short lines
// are sorted by a block in shared memory (Batcher 1968), others by radix_sort.cpp; of long lines
// with few results the results are selected first. argsort_rows orders the rows of a matrix.
#include "block/rank.h"
#include "host/walk.h"

namespace plait::cuda {
namespace {

constexpr int kThreads = 256;

struct SortArgs {
  const void *from;
  void *values;
  int64_t *indices;
  const void *keys;        // of long lines: sorted, or to be written
  const uint32_t *places;  // of long lines, sorted
  // Elements that were selected before: element i of a line has index map[i].
  const uint32_t *map;
  int64_t lines, n, keep;         // elements of a line, and of a line of the results
  int64_t from_step, values_step;  // in elements
  int32_t descending, width;       // and of short lines, the next power of 2 of n
  int32_t lines_of_block;
  Walk<2> line;  // of the results and of `from`, in elements
};
struct SelectArgs {
  const void *from;
  void *values;
  uint32_t *indices;
  int64_t n, keep, from_step;
  int32_t descending;
  Walk<1> line;
};
struct RowArgs {  // one round of merging
  const void *rows;
  const int64_t *from;
  int64_t *to;
  int64_t n, width, run;
};

#if PLAIT_KERNELS
// Keys and places are sorted together, so that no two are equal and the order is stable.
template <class T>
PLAIT_DEVICE void sort_short(Block &t, const SortArgs &a) {
  using K = SortKey<T>;
  const int total = a.lines_of_block * a.width;
  const auto keys = t.shared<K>(total);
  const auto places = t.shared<uint32_t>(total);
  const auto from = t.global<const T>(a.from);
  const int64_t first = t.block() * a.lines_of_block;
  for (int i = t.thread(); i < total; i += t.threads()) {
    const int64_t line = first + i / a.width, at = i % a.width;
    const bool valid = line < a.lines && at < a.n;
    int64_t offset[2] = {0, 0};
    if (valid) a.line.seek(line, offset);
    keys.store(
        i, valid ? directed_key(from.load(offset[1] + at * a.from_step), a.descending) : K(~K(0)));
    places.store(i, valid ? uint32_t(at) : ~0u);
  }
  t.barrier();
  for (int size = 2; size <= a.width; size *= 2)
    for (int apart = size / 2; apart > 0; apart /= 2) {
      for (int pair = t.thread(); pair < total / 2; pair += t.threads()) {
        const int i = pair / apart * 2 * apart + pair % apart, j = i + apart;
        const bool up = (i & (a.width - 1) & size) == 0;
        const K x = keys.load(i), y = keys.load(j);
        const uint32_t p = places.load(i), q = places.load(j);
        const bool in_order = x < y || (x == y && p < q);
        if (in_order == up) continue;
        keys.store(i, y), keys.store(j, x);
        places.store(i, q), places.store(j, p);
      }
      t.barrier();
    }
  const auto values = t.global<T>(a.values);
  const auto indices = t.global<int64_t>(a.indices);
  const auto map = t.global<const uint32_t>(a.map ? a.map : a.places);
  for (int i = t.thread(); i < total; i += t.threads()) {
    const int64_t line = first + i / a.width, at = i % a.width;
    if (line >= a.lines || at >= a.keep) continue;
    int64_t offset[2];
    a.line.seek(line, offset);
    const uint32_t place = places.load(i);
    const int64_t to = offset[0] + at * a.values_step;
    values.store(to, from.load(offset[1] + int64_t(place) * a.from_step));
    indices.store(to, a.map ? int64_t(map.load(line * a.n + place)) : int64_t(place));
  }
}

template <class T>
PLAIT_DEVICE void write_keys(Thread &t, const SortArgs &a) {
  using K = SortKey<T>;
  const auto from = t.global<const T>(a.from);
  const auto keys = t.global<K>(const_cast<void *>(a.keys));
  for (int64_t i = t.index(); i < a.lines * a.n; i += t.stride()) {
    const int64_t line = i / a.n, at = i - line * a.n;
    int64_t offset[2];
    a.line.seek(line, offset);
    keys.store(i, directed_key(from.load(offset[1] + at * a.from_step), a.descending));
  }
}

template <class T>
PLAIT_DEVICE void write_sorted(Thread &t, const SortArgs &a) {
  const auto from = t.global<const T>(a.from);
  const auto values = t.global<T>(a.values);
  const auto indices = t.global<int64_t>(a.indices);
  const auto places = t.global<const uint32_t>(a.places);
  const auto map = t.global<const uint32_t>(a.map ? a.map : a.places);
  for (int64_t i = t.index(); i < a.lines * a.keep; i += t.stride()) {
    const int64_t line = i / a.keep, at = i - line * a.keep;
    int64_t offset[2];
    a.line.seek(line, offset);
    const uint32_t place = places.load(line * a.n + at);
    const int64_t to = offset[0] + at * a.values_step;
    values.store(to, from.load(offset[1] + int64_t(place) * a.from_step));
    indices.store(to, a.map ? int64_t(map.load(line * a.n + place)) : int64_t(place));
  }
}

// One block for each line writes the `keep` first elements of the sorted line, in the order that
// they have in the line.
template <class T>
PLAIT_DEVICE void select_first(Block &t, const SelectArgs &a) {
  using K = SortKey<T>;
  const RankRoom room(t);
  int64_t offset[1];
  a.line.seek(t.block(), offset);
  const RankedLine<T> line{t.global<const T>(a.from), offset[0], a.from_step, a.n,
                           a.descending != 0};
  uint32_t rank = uint32_t(a.keep) - 1;
  const K last = key_of_rank(t, line, room, &rank);
  uint32_t equal_left = rank + 1, at = 0;  // the first of the equal ones are taken
  const auto values = t.global<T>(a.values);
  const auto indices = t.global<uint32_t>(a.indices);
  for (int64_t base = 0; base < a.n; base += kThreads) {
    const int64_t i = base + t.thread();
    const T x = i < a.n ? line.load(i) : T();
    const K key = directed_key(x, a.descending);
    const bool equal = i < a.n && key == last, less = i < a.n && key < last;
    uint32_t all;  // counts of both kinds at once: at most 256 of each
    const uint32_t before =
        exclusive_sum(t, room.sums, uint32_t(less) << 16 | uint32_t(equal), &all);
    const uint32_t equal_before = before & 0xffff,
                   taken = equal_before < equal_left ? equal_before : equal_left;
    if (less || (equal && equal_before < equal_left)) {
      const int64_t to = t.block() * a.keep + at + (before >> 16) + taken;
      values.store(to, x);
      indices.store(to, uint32_t(i));
    }
    const uint32_t equals = all & 0xffff, used = equals < equal_left ? equals : equal_left;
    at += (all >> 16) + used;
    equal_left -= used;
  }
}

template <class T>
PLAIT_DEVICE bool is_row_before(const Global<const T> &rows, int64_t i, int64_t j, int64_t width) {
  for (int64_t k = 0; k < width; k++) {
    const auto x = sort_key(rows.load(i * width + k)), y = sort_key(rows.load(j * width + k));
    if (x != y) return x < y;
  }
  return false;
}

// Merges neighbouring runs: the place of a row is its own, and the number of rows of the other run
// that come before it.
template <class T>
PLAIT_DEVICE void merge_rows(Thread &t, const RowArgs &a) {
  const auto rows = t.global<const T>(a.rows);
  const auto from = t.global<const int64_t>(a.from);
  const auto to = t.global<int64_t>(a.to);
  for (int64_t i = t.index(); i < a.n; i += t.stride()) {
    const int64_t row = from.load(i), begin = i / (2 * a.run) * (2 * a.run);
    const int64_t middle = begin + a.run < a.n ? begin + a.run : a.n;
    const int64_t end = begin + 2 * a.run < a.n ? begin + 2 * a.run : a.n;
    const bool is_second = i >= middle;
    int64_t low = is_second ? begin : middle, high = is_second ? middle : end;
    const int64_t first = low;
    while (low < high) {
      const int64_t half = low + (high - low) / 2, other = from.load(half);
      // of equal rows those of the first run come first
      const bool before = is_second ? !is_row_before(rows, row, other, a.width)
                                    : is_row_before(rows, other, row, a.width);
      if (before)
        low = half + 1;
      else
        high = half;
    }
    to.store((is_second ? i - (middle - begin) : i) + (low - first), row);
  }
}
#endif

PLAIT_DEVICE_KERNEL(sort_short, SortArgs, kThreads, NUMERIC);
PLAIT_DEVICE_KERNEL(write_keys, SortArgs, 256, NUMERIC);
PLAIT_DEVICE_KERNEL(write_sorted, SortArgs, 256, NUMERIC);
PLAIT_DEVICE_KERNEL(select_first, SelectArgs, kThreads, NUMERIC);
PLAIT_DEVICE_KERNEL(merge_rows, RowArgs, 256, NUMERIC);

}  // namespace
}  // namespace plait::cuda

#if PLAIT_HOST
#include "host/copy.h"
#include "host/lines.h"
#include "host/sort.h"

namespace plait::cuda {
namespace {

constexpr int64_t kShort = 2048;  // the longest line that a block sorts

int key_size(Kind k) { return size_of(k) == 8 ? 8 : 4; }

// Sorts the lines that `a` describes, whose `n` is at least 1.
plait_status sort_lines(const plait_call *c, Kind k, SortArgs a) {
  if (a.n <= kShort) {
    a.width = 1;
    while (a.width < a.n) a.width *= 2;
    a.lines_of_block = a.width < 512 ? 512 / a.width : 1;
    const int64_t total = int64_t(a.lines_of_block) * a.width;
    return launch(c, sort_short_kernel, k, a, ceil_div(a.lines, a.lines_of_block), kThreads,
                  total * (key_size(k) + 4));
  }
  RadixSort radix;
  PLAIT_TRY(radix.take(c, a.lines, a.n, key_size(k)));
  a.keys = radix.keys();
  PLAIT_TRY(launch(c, write_keys_kernel, k, a, blocks_for(c, a.lines * a.n, 256), 256));
  PLAIT_TRY(radix.sort(c, 8 * size_of(k)));
  a.places = radix.places();
  return launch(c, write_sorted_kernel, k, a, blocks_for(c, a.lines * a.keep, 256), 256);
}

// The first elements of each sorted line, chosen before they are sorted.
plait_status sort_selected(const plait_call *c, Kind k, SortArgs a) {
  DeviceWorkspace values, indices;
  PLAIT_TRY(values.take(c, a.lines * a.keep * size_of(k)));
  PLAIT_TRY(indices.take(c, a.lines * a.keep * 4));
  SelectArgs s{
      a.from, values.data(), indices.data<uint32_t>(), a.n, a.keep, a.from_step, a.descending, {}};
  s.line = second_of(a.line);
  PLAIT_TRY(launch(c, select_first_kernel, k, s, a.lines, kThreads, (256 + kThreads / 32 + 2) * 4));
  a.from = values.data(), a.map = indices.data<uint32_t>();
  a.n = a.keep, a.from_step = 1;
  const DLTensor *out = result(c, 0);
  const int dim = out->ndim ? int(wrapped(integer(c, 2, -1), out->ndim)) : 0;
  if (!lines_of_array(out, dim, a.keep, false, &a.line)) return too_many_dimensions(c);
  return sort_lines(c, k, a);
}

plait_status sorted(const plait_call *c, int dim_argument, bool descending, int64_t keep) {
  Operand from;
  PLAIT_TRY(from.take(c, tensor(c, 0)));
  const DLTensor *self = from.tensor(), *values = result(c, 0);
  const int dim = self->ndim ? int(wrapped(integer(c, dim_argument, -1), self->ndim)) : 0;
  SortArgs a{};
  a.n = self->ndim ? self->shape[dim] : 1;
  a.keep = keep < 0 ? a.n : keep;
  if (numel(self) == 0 || a.keep == 0) return PLAIT_OK;
  if (a.n > UINT32_MAX)
    return PLAIT_FAIL(c, PLAIT_NOT_IMPLEMENTED,
                      "dimension %d must have at most 2**32 - 1 elements; got %lld", dim,
                      (long long)a.n);
  a.from = self->data, a.values = values->data, a.indices = data<int64_t>(result(c, 1));
  a.lines = numel(self) / a.n;
  a.from_step = step_of(self, dim), a.values_step = step_of(values, dim);
  a.descending = descending;
  if (!lines_of(values, self, dim, &a.line)) return too_many_dimensions(c);
  const Kind k = sort_kind(self);
  const bool few = a.n > kShort && a.keep <= a.n / 4 && (a.n <= 1 << 20 || a.lines >= 16);
  return few ? sort_selected(c, k, a) : sort_lines(c, k, a);
}

// sort(self, dim, descending, stable) -> (values, indices)
plait_status sort(plait_call *c) { return sorted(c, 1, integer(c, 2) != 0, -1); }
// topk(self, k, dim, largest, sorted) -> (values, indices)
plait_status topk(plait_call *c) { return sorted(c, 2, integer(c, 3, 1) != 0, integer(c, 1)); }
PLAIT_KERNEL("sort", sort);
PLAIT_KERNEL("topk", topk);

// argsort_rows(self): the order of the rows of a matrix
plait_status argsort_rows(plait_call *c) {
  const DLTensor *self = tensor(c, 0), *out = result(c);
  const int64_t n = self->shape[0];
  if (n == 0) return PLAIT_OK;
  int rounds = 0;
  while (int64_t(1) << rounds < n) rounds++;
  Operand rows;
  DeviceWorkspace other;
  PLAIT_TRY(rows.take_dense(c, self));
  PLAIT_TRY(other.take(c, n * 8));
  // rounds take turns with two arrays, so that the last one writes the result
  int64_t *to[2] = {data<int64_t>(out), other.data<int64_t>()};
  int now = rounds % 2;
  PLAIT_TRY(number_elements(c, to[now], n));
  for (int64_t run = 1; run < n; run *= 2, now = 1 - now) {
    const RowArgs a{rows.data(), to[now], to[1 - now], n, self->shape[1], run};
    PLAIT_TRY(launch(c, merge_rows_kernel, sort_kind(self), a, blocks_for(c, n, 256), 256));
  }
  return PLAIT_OK;
}
PLAIT_KERNEL("argsort_rows", argsort_rows);

}  // namespace

plait_status sort_rows(const plait_call *c, Kind k, const void *rows, int64_t lines, int64_t n,
                       int64_t keep, void *values, int64_t *indices) {
  SortArgs a{};
  a.from = rows, a.values = values, a.indices = indices;
  a.lines = lines, a.n = n, a.keep = keep, a.from_step = a.values_step = 1;
  Plan p;
  p.operands = 2, p.ndim = 1, p.numel = p.size[0] = lines;
  p.stride[0][0] = keep, p.stride[1][0] = n;
  make_walk(p, &a.line);
  return sort_lines(c, k, a);
}

plait_status sort_dimension(const plait_call *c, const DLTensor *self, int dim, void *values,
                            int64_t *indices) {
  SortArgs a{};
  a.n = a.keep = self->ndim ? self->shape[dim] : 1;
  a.lines = numel(self) / a.n;
  a.from = self->data, a.values = values, a.indices = indices;
  a.from_step = step_of(self, dim), a.values_step = 1;
  if (!lines_of_array(self, dim, a.n, true, &a.line)) return too_many_dimensions(c);
  return sort_lines(c, sort_kind(self), a);
}

}  // namespace plait::cuda
#endif
