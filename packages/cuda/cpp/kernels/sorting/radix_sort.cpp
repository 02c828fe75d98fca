// A stable sort of keys by digits of 8 bits, the least significant first. For each digit, blocks
// count the keys of their tiles, the counts become places, and blocks move their keys there.
#include "block/scan.h"

namespace plait::cuda {
namespace {

constexpr int kDigits = 256, kSortThreads = 256, kSortWarps = kSortThreads / 32;
constexpr int kPerThread = 16, kTile = kSortThreads * kPerThread;

struct RadixArgs {
  const void *keys;
  const uint32_t *places;  // NULL: the first digit, where place i is i
  void *sorted_keys;
  uint32_t *sorted_places;
  uint32_t *counts;  // [line][digit][tile]
  uint32_t *totals;  // [line][digit]
  int64_t n, tiles;
  int32_t shift;
};
struct SumArgs {
  int64_t *counts;
  int64_t n;
};

#if PLAIT_KERNELS
template <class K>
PLAIT_DEVICE int digit_of(K key, int shift) {
  return int(key >> shift & K(kDigits - 1));
}

template <class K>
PLAIT_DEVICE void radix_count(Block &t, const RadixArgs &a) {
  const auto counts = t.shared<uint32_t>(kDigits);
  const int64_t line = t.block() / a.tiles, tile = t.block() % a.tiles, first = tile * kTile;
  const auto keys = t.global<const K>(a.keys);
  counts.store(t.thread(), 0);
  t.barrier();
#pragma unroll 4
  for (int k = 0; k < kPerThread; k++) {
    const int64_t i = first + k * kSortThreads + t.thread();
    if (i < a.n) counts.add(digit_of(keys.load(line * a.n + i), a.shift), 1);
  }
  t.barrier();
  const int64_t at = line * kDigits + t.thread();
  t.global<uint32_t>(a.counts).store(at * a.tiles + tile, counts.load(t.thread()));
}

// One block for each digit of each line: sums over the tiles.
template <class K>
PLAIT_DEVICE void radix_sum(Block &t, const RadixArgs &a) {
  const auto room = t.shared<uint32_t>(kSortWarps);
  const auto counts = t.global<uint32_t>(a.counts + t.block() * a.tiles);
  uint32_t before = 0;
  for (int64_t first = 0; first < a.tiles; first += kSortThreads) {
    const int64_t i = first + t.thread();
    uint32_t all;
    const uint32_t own = i < a.tiles ? counts.load(i) : 0;
    const uint32_t sum = exclusive_sum(t, room, own, &all);
    if (i < a.tiles) counts.store(i, before + sum);
    before += all;
  }
  if (t.thread() == 0) t.global<uint32_t>(a.totals).store(t.block(), before);
}

template <class K>
struct RadixTile {  // the elements of one thread; those of a warp are neighbours
  K key[kPerThread];
  uint32_t place[kPerThread], rank[kPerThread];
};

// Ranks of elements among those of their warp with the same digit. `row` counts the digits.
template <class K>
PLAIT_DEVICE void rank_in_warp(Block &t, const RadixArgs &a, int64_t line, int64_t first,
                               const Shared<uint32_t> &counts, RadixTile<K> *x) {
  const auto keys = t.global<const K>(a.keys);
  const auto places = t.global<const uint32_t>(a.places ? a.places : a.sorted_places);
#pragma unroll
  for (int k = 0; k < kPerThread; k++) {
    const int64_t i = first + k * kWarp + t.lane();
    x->key[k] = i < a.n ? keys.load(line * a.n + i) : K(0);
    x->place[k] = i >= a.n ? 0 : a.places ? places.load(line * a.n + i) : uint32_t(i);
  }
#pragma unroll
  for (int k = 0; k < kPerThread; k++) {
    const bool valid = first + k * kWarp + t.lane() < a.n;
    const int digit = digit_of(x->key[k], a.shift), at = t.warp() * kDigits + digit;
    uint32_t peers = t.ballot(valid);
#pragma unroll
    for (int bit = 0; bit < 8; bit++) {
      const bool own = digit >> bit & 1;
      const uint32_t votes = t.ballot(own);
      peers &= own ? votes : ~votes;
    }
    const int lower = count_bits(peers & ((1u << t.lane()) - 1));
    const uint32_t before = valid ? counts.load(at) : 0;
    t.warp_barrier();
    if (valid && lower == 0) counts.store(at, before + uint32_t(count_bits(peers)));
    t.warp_barrier();
    x->rank[k] = before + uint32_t(lower);
  }
}

template <class K>
PLAIT_DEVICE void radix_move(Block &t, const RadixArgs &a) {
  const auto counts = t.shared<uint32_t>(kSortWarps * kDigits);
  const auto base = t.shared<uint32_t>(kDigits);   // where a digit begins in the line
  const auto local = t.shared<uint32_t>(kDigits);  // and in the sorted tile
  const auto room = t.shared<uint32_t>(kSortWarps);
  const auto key_tile = t.shared<K>(kTile);
  const auto place_tile = t.shared<uint32_t>(kTile);
  const int64_t line = t.block() / a.tiles, tile = t.block() % a.tiles, first = tile * kTile;
  const int64_t digit_at = line * kDigits + t.thread();
  uint32_t all;
  for (int w = 0; w < kSortWarps; w++) counts.store(w * kDigits + t.thread(), 0);
  if (a.tiles > 1) {
    const uint32_t below =
        exclusive_sum(t, room, t.global<const uint32_t>(a.totals).load(digit_at), &all);
    base.store(t.thread(),
               below + t.global<const uint32_t>(a.counts).load(digit_at * a.tiles + tile));
  }
  t.barrier();
  const int64_t own = first + t.warp() * (kPerThread * kWarp);
  RadixTile<K> x;
  rank_in_warp(t, a, line, own, counts, &x);
  t.barrier();
  uint32_t sum = 0;  // of this thread's digit in the warps before
  for (int w = 0; w < kSortWarps; w++) {
    const uint32_t each = counts.load(w * kDigits + t.thread());
    counts.store(w * kDigits + t.thread(), sum);
    sum += each;
  }
  const uint32_t begin = exclusive_sum(t, room, sum, &all);
  local.store(t.thread(), begin);
  if (a.tiles == 1) base.store(t.thread(), begin);  // a tile is the line
  t.barrier();
#pragma unroll
  for (int k = 0; k < kPerThread; k++) {
    if (own + k * kWarp + t.lane() >= a.n) continue;
    const int digit = digit_of(x.key[k], a.shift);
    const uint32_t to = local.load(digit) + counts.load(t.warp() * kDigits + digit) + x.rank[k];
    key_tile.store(to, x.key[k]);
    place_tile.store(to, x.place[k]);
  }
  t.barrier();
  const int64_t count = a.n - first < kTile ? a.n - first : kTile;
  const auto keys = t.global<K>(a.sorted_keys);
  const auto places = t.global<uint32_t>(a.sorted_places);
  for (int64_t i = t.thread(); i < count; i += kSortThreads) {
    const K key = key_tile.load(i);
    const int digit = digit_of(key, a.shift);
    const int64_t to = line * a.n + base.load(digit) + i - local.load(digit);
    keys.store(to, key);
    places.store(to, place_tile.load(i));
  }
}

// One block.
template <class T>
PLAIT_DEVICE void sum_counts_before(Block &t, const SumArgs &a) {
  constexpr int kEach = 4;
  const auto room = t.shared<int64_t>(kSortWarps);
  const auto counts = t.global<int64_t>(a.counts);
  int64_t before = 0;
  for (int64_t first = 0; first < a.n; first += kEach * kSortThreads) {
    int64_t own[kEach], mine = 0, all;
    for (int k = 0; k < kEach; k++) {
      const int64_t i = first + t.thread() * kEach + k;
      own[k] = i < a.n ? counts.load(i) : 0;
      mine += own[k];
    }
    int64_t sum = before + exclusive_sum(t, room, mine, &all);
    for (int k = 0; k < kEach; k++) {
      const int64_t i = first + t.thread() * kEach + k;
      if (i < a.n) counts.store(i, sum);
      sum += own[k];
    }
    before += all;
  }
  if (t.thread() == 0) counts.store(a.n, before);
}
#endif

#define PLAIT_EACH_SORT_KEYS(X, ...) X(u32, uint32_t, __VA_ARGS__) X(u64, uint64_t, __VA_ARGS__)
#define PLAIT_EACH_COUNTS(X, ...) X(i64, int64_t, __VA_ARGS__)
PLAIT_DEVICE_KERNEL(radix_count, RadixArgs, kSortThreads, SORT_KEYS);
PLAIT_DEVICE_KERNEL(radix_sum, RadixArgs, kSortThreads, SORT_KEYS);
PLAIT_DEVICE_KERNEL(radix_move, RadixArgs, kSortThreads, SORT_KEYS);
PLAIT_DEVICE_KERNEL(sum_counts_before, SumArgs, kSortThreads, COUNTS);

}  // namespace
}  // namespace plait::cuda

#if PLAIT_HOST
#include "host/sort.h"

namespace plait::cuda {

plait_status RadixSort::take(const plait_call *c, int64_t lines, int64_t n, int item) {
  lines_ = lines, n_ = n, item_ = item;
  tiles_ = ceil_div(n, kTile);
  for (DeviceWorkspace &each : keys_) PLAIT_TRY(each.take(c, lines * n * item));
  for (DeviceWorkspace &each : places_) PLAIT_TRY(each.take(c, lines * n * 4));
  PLAIT_TRY(counts_.take(c, lines * kDigits * tiles_ * 4));
  return totals_.take(c, lines * kDigits * 4);
}

plait_status RadixSort::sort(const plait_call *c, int bits) {
  if (lines_ * n_ == 0) return PLAIT_OK;
  const Kind k = item_ == 8 ? U64 : U32;
  const int64_t shared = (int64_t(kSortWarps) * kDigits + 2 * kDigits + kSortWarps) * 4 +
                         int64_t(kTile) * (item_ + 4) + 8;
  const int64_t digits = lines_ * kDigits;
  for (int shift = 0; shift < bits; shift += 8) {
    const RadixArgs a{keys_[now_].data(),
                      shift ? places_[now_].data<uint32_t>() : nullptr,
                      keys_[1 - now_].data(),
                      places_[1 - now_].data<uint32_t>(),
                      counts_.data<uint32_t>(),
                      totals_.data<uint32_t>(),
                      n_,
                      tiles_,
                      shift};
    if (tiles_ > 1) {
      PLAIT_TRY(launch(c, radix_count_kernel, k, a, lines_ * tiles_, kSortThreads, kDigits * 4));
      PLAIT_TRY(launch(c, radix_sum_kernel, k, a, digits, kSortThreads, kSortWarps * 4));
    }
    PLAIT_TRY(launch(c, radix_move_kernel, k, a, lines_ * tiles_, kSortThreads, shared));
    now_ = 1 - now_;
  }
  return PLAIT_OK;
}

plait_status sum_counts(const plait_call *c, int64_t *counts, int64_t n) {
  const SumArgs a{counts, n};
  return launch(c, sum_counts_before_kernel, I64, a, 1, kSortThreads, kSortWarps * 8);
}

}  // namespace plait::cuda
#endif
