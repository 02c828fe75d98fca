// The element of a rank among those of a line, found by a block digit by digit, the most
// significant first, in passes that count.
#pragma once
#include "block/scan.h"
#include "block/sort_keys.h"

#if PLAIT_KERNELS
namespace plait::cuda {

constexpr int kRankThreads = 256;  // of the block: one for each digit

template <class T>
struct RankedLine {
  Global<const T> from;
  int64_t first, step, n;  // in elements
  bool descending;
  PLAIT_DEVICE T load(int64_t i) const { return from.load(first + i * step); }
  PLAIT_DEVICE SortKey<T> key(int64_t i) const { return directed_key(load(i), descending); }
};

struct RankRoom {
  Shared<uint32_t> counts, sums, choice;
  PLAIT_DEVICE explicit RankRoom(Block &t)
      : counts(t.shared<uint32_t>(kRankThreads)),
        sums(t.shared<uint32_t>(kRankThreads / kWarp)),
        choice(t.shared<uint32_t>(2)) {}
};

// The key that a sort would put at `*rank`, which becomes the rank among the elements with that
// key.
template <class T>
PLAIT_DEVICE SortKey<T> key_of_rank(Block &t, const RankedLine<T> &line, const RankRoom &room,
                                    uint32_t *rank) {
  using K = SortKey<T>;
  K prefix = 0, mask = 0;
#pragma unroll 1
  for (int shift = kKeyBits<T> - 8; shift >= 0; shift -= 8) {
    room.counts.store(t.thread(), 0);
    t.barrier();
    for (int64_t i = t.thread(); i < line.n; i += kRankThreads) {
      const K key = line.key(i);
      if ((key & mask) == prefix) room.counts.add(int64_t(key >> shift & K(255)), 1);
    }
    t.barrier();
    const uint32_t own = room.counts.load(t.thread());
    uint32_t all;
    const uint32_t below = exclusive_sum(t, room.sums, own, &all);
    if (below <= *rank && *rank < below + own) {
      room.choice.store(0, uint32_t(t.thread()));
      room.choice.store(1, below);
    }
    t.barrier();
    prefix |= K(room.choice.load(0)) << shift;
    mask |= K(255) << shift;
    *rank -= room.choice.load(1);
    t.barrier();
  }
  return prefix;
}

}  // namespace plait::cuda
#endif
