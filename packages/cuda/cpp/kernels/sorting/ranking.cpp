// Elements by rank along a dimension: kthvalue, median, nanmedian; and mode, by a sort.
#include "block/rank.h"
#include "host/walk.h"

namespace plait::cuda {
namespace {

enum Statistic : int32_t { kKth, kMedian, kNanMedian };

struct RankArgs {
  const void *from;
  void *values;  // one element for each line, as of indices
  int64_t *indices;
  int64_t lines, n, step, k;
  int32_t statistic;
  Walk<1> line;
};
struct ModeArgs {
  void *values;  // one element for each line, as of indices
  int64_t *indices;
  const void *sorted;     // the elements of each line in order
  const int64_t *places;  // and the places that they had
  int64_t lines, n;
};

#if PLAIT_KERNELS
constexpr int kThreads = kRankThreads;

template <class V>
struct Best {  // a value, and the place where it stands
  V value;
  int64_t place;
};

// The largest value of all threads; of equal ones that at the smallest place.
template <class V>
PLAIT_DEVICE Best<V> largest_of_block(Block &t, const Shared<Best<V>> &room, Best<V> best) {
  const auto better = [](const Best<V> &a, const Best<V> &b) {
    return a.value > b.value || (a.value == b.value && a.place <= b.place) ? a : b;
  };
#pragma unroll
  for (int by = kWarp / 2; by > 0; by /= 2) best = better(best, t.shuffle_xor(best, by));
  if (t.lane() == 0) room.store(t.warp(), best);
  t.barrier();
  for (int w = 0; w < t.warps(); w++) best = better(best, room.load(w));
  t.barrier();
  return best;
}

// The index of the element that a stable sort would put at `rank`.
template <class T>
PLAIT_DEVICE int64_t index_of_rank(Block &t, const RankedLine<T> &line, const RankRoom &room,
                                   uint32_t rank) {
  const SortKey<T> wanted = key_of_rank(t, line, room, &rank);
  uint32_t before = 0;
  for (int64_t base = 0; base < line.n; base += kThreads) {
    const int64_t i = base + t.thread();
    const bool equal = i < line.n && line.key(i) == wanted;
    uint32_t all;
    const uint32_t own = before + exclusive_sum(t, room.sums, uint32_t(equal), &all);
    if (equal && own == rank) room.choice.store(0, uint32_t(i));
    before += all;
    if (before > rank) break;
  }
  t.barrier();
  const int64_t found = room.choice.load(0);
  t.barrier();
  return found;
}

// One block for each line.
template <class T>
PLAIT_DEVICE void rank_lines(Block &t, const RankArgs &a) {
  const RankRoom room(t);
  const auto best_room = t.shared<Best<int64_t>>(kThreads / kWarp);
  const auto values = t.global<T>(a.values);
  const auto indices = t.global<int64_t>(a.indices);
  for (int64_t number = t.block(); number < a.lines; number += t.blocks()) {
    int64_t offset[1];
    a.line.seek(number, offset);
    const RankedLine<T> line{t.global<const T>(a.from), offset[0], a.step, a.n, false};
    int64_t rank = a.k - 1, at = -1;
    if (a.statistic != kKth) {
      uint32_t nans = 0, all;
      int64_t first = a.n;
      for (int64_t i = t.thread(); i < a.n; i += kThreads)
        if (is_nan(line.load(i))) nans++, first = i < first ? i : first;
      exclusive_sum(t, room.sums, nans, &all);
      first = largest_of_block(t, best_room, Best<int64_t>{-first, 0}).value;
      const int64_t numbers = a.n - all;
      if (all && (a.statistic == kMedian || numbers == 0)) at = -first;
      rank = (numbers - 1) / 2;
    }
    if (at < 0) at = index_of_rank(t, line, room, uint32_t(rank));
    if (t.thread() == 0) {
      values.store(number, line.load(at));
      indices.store(number, at);
    }
  }
}

// The last index of the most frequent element; of equally frequent ones, of the smallest. Each nan
// counts as a different element.
template <class T>
PLAIT_DEVICE void find_modes(Block &t, const ModeArgs &a) {
  const auto room = t.shared<Best<int64_t>>(kThreads / kWarp);
  const auto sorted = t.global<const T>(a.sorted);
  const auto places = t.global<const int64_t>(a.places);
  for (int64_t number = t.block(); number < a.lines; number += t.blocks()) {
    const int64_t first = number * a.n;
    Best<int64_t> best{0, a.n};
    for (int64_t i = t.thread(); i < a.n; i += kThreads) {
      const T x = sorted.load(first + i);
      const auto key = sort_key(x);
      if (is_nan(x) || (i > 0 && sort_key(sorted.load(first + i - 1)) == key))
        continue;  // no run begins here
      int64_t low = i + 1, high = a.n;  // the end of the run
      while (low < high) {
        const int64_t half = low + (high - low) / 2;
        if (sort_key(sorted.load(first + half)) == key)
          low = half + 1;
        else
          high = half;
      }
      if (low - i > best.value) best = {low - i, i};
    }
    best = largest_of_block(t, room, best);
    if (t.thread() == 0) {
      const int64_t last = first + (best.value ? best.place + best.value : a.n) - 1;
      t.global<T>(a.values).store(number, sorted.load(last));
      t.global<int64_t>(a.indices).store(number, places.load(last));
    }
  }
}
#endif

PLAIT_DEVICE_KERNEL(rank_lines, RankArgs, 256, NUMERIC);
PLAIT_DEVICE_KERNEL(find_modes, ModeArgs, 256, NUMERIC);

}  // namespace
}  // namespace plait::cuda

#if PLAIT_HOST
#include "host/copy.h"
#include "host/lines.h"
#include "host/sort.h"

namespace plait::cuda {
namespace {

constexpr int64_t kMostBlocks = 1 << 20;

int dim_of(const plait_call *c, int i) {
  const DLTensor *self = tensor(c, 0);
  return self->ndim ? int(wrapped(integer(c, i, -1), self->ndim)) : 0;
}

plait_status check_length(const plait_call *c, int dim, int64_t n) {
  if (n <= UINT32_MAX) return PLAIT_OK;
  return PLAIT_FAIL(c, PLAIT_NOT_IMPLEMENTED,
                    "dimension %d must have at most 2**32 - 1 elements; got %lld", dim,
                    (long long)n);
}

plait_status rank(const plait_call *c, int dim, Statistic statistic, int64_t k) {
  Operand from;
  PLAIT_TRY(from.take(c, tensor(c, 0)));
  const DLTensor *self = from.tensor();
  if (numel(self) == 0) return PLAIT_OK;
  const int64_t n = self->ndim ? self->shape[dim] : 1;
  PLAIT_TRY(check_length(c, dim, n));
  RankArgs a{self->data,
             result(c)->data,
             data<int64_t>(result(c, 1)),
             numel(self) / n,
             n,
             step_of(self, dim),
             k,
             statistic,
             {}};
  if (!lines_of_all<1>({self}, dim, &a.line)) return too_many_dimensions(c);
  return launch(c, rank_lines_kernel, sort_kind(self), a,
                a.lines < kMostBlocks ? a.lines : kMostBlocks, 256, (256 + 8 + 2) * 4 + 8 * 16 + 8);
}
plait_status kthvalue(plait_call *c) { return rank(c, dim_of(c, 2), kKth, integer(c, 1)); }
plait_status median(plait_call *c) { return rank(c, dim_of(c, 1), kMedian, 0); }
plait_status nanmedian(plait_call *c) { return rank(c, dim_of(c, 1), kNanMedian, 0); }

plait_status mode(plait_call *c) {
  Operand from;
  PLAIT_TRY(from.take(c, tensor(c, 0)));
  const DLTensor *self = from.tensor();
  if (numel(self) == 0) return PLAIT_OK;
  const int dim = dim_of(c, 1);
  const int64_t n = self->ndim ? self->shape[dim] : 1;
  PLAIT_TRY(check_length(c, dim, n));
  const Kind k = sort_kind(self);
  const int64_t lines = numel(self) / n;
  DeviceWorkspace sorted, places;
  PLAIT_TRY(sorted.take(c, lines * n * size_of(k)));
  PLAIT_TRY(places.take(c, lines * n * 8));
  PLAIT_TRY(sort_dimension(c, self, dim, sorted.data(), places.data<int64_t>()));
  const ModeArgs a{result(c)->data, data<int64_t>(result(c, 1)),
                   sorted.data(),   places.data<int64_t>(),
                   lines,           n};
  return launch(c, find_modes_kernel, k, a, lines < kMostBlocks ? lines : kMostBlocks, 256,
                8 * 16 + 8);
}

PLAIT_KERNEL("kthvalue", kthvalue);
PLAIT_KERNEL("median.dim", median);
PLAIT_KERNEL("nanmedian.dim", nanmedian);
PLAIT_KERNEL("mode", mode);

}  // namespace
}  // namespace plait::cuda
#endif
