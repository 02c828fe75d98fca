// Blocks above the small sizes: cut from mapped pages, split, merged and given back to the system.
#pragma once
#include <cstdint>

#include "sizes.hpp"

namespace plait::core {

// A part of a mapped range. It lies outside of the memory it describes: free memory isn't touched.
struct Block {
  char *data;
  uint64_t size;
  int64_t freed;           // the time at which it was freed, in nanoseconds
  Block *below, *above;    // the neighbours in its range, NULL at its borders
  Block *next, *previous;  // in the list of free blocks of its class
  Block *older, *newer;    // among all free blocks, in the order of `freed`
  bool free, huge;         // huge: of the pool of huge pages
};

// Records of blocks. They are reused and never given back.
class BlockRecords {
 public:
  Block *take();  // NULL: no memory
  void give(Block *block);
  void give_all(Block *list);  // by `next`

 private:
  Block *free_ = nullptr;
};

// How long a free block is kept: half as long again as the longest age at which one was taken again
// lately.
class ReusePeriod {
 public:
  int64_t at(int64_t now) const;
  void reused(int64_t age, int64_t now);         // a free block was taken again
  void released(uint64_t bytes, int64_t freed);  // one was given back to the system
  void mapped(uint64_t bytes, int64_t now);      // more memory was mapped

 private:
  static constexpr int kReleases = 16;
  struct Release {  // what was given back of late, and when it had been freed
    int64_t freed;
    uint64_t bytes;
  };
  int64_t longest(int64_t now) const;
  int64_t longest_ = 0, seen_ = 0;
  Release releases_[kReleases] = {};
  uint32_t last_ = 0;
};

// The free blocks of each size class. They are not a part of `BlockPool`, because a library's file
// stores a variable that has any value other than zero as a whole.
struct FreeLists {
  static constexpr uint32_t kWords = (kLargeClasses + 63) / 64;
  uint64_t classes[kWords];  // a bit for each list that is not empty
  Block *first[kLargeClasses];
};

class BlockPool {
 public:
  // Sizes are multiples of `grain`. Pages are mapped in multiples of `growth` and released in
  // multiples of `page`, which are powers of two. `lists` are empty.
  constexpr BlockPool(FreeLists &lists, uint64_t grain, uint64_t page, uint64_t growth)
      : grain_(grain), page_(page), growth_(growth), lists_(lists) {}

  Block *take(uint64_t bytes, BlockRecords &records);  // NULL: no free block is large enough
  Block *grow(uint64_t bytes, int64_t now, BlockRecords &records);  // from new pages, or NULL
  void give(Block *block, int64_t now);
  // Takes whole pages out that were freed at `before` or earlier, the oldest first, until at most
  // `keep` bytes are free. Returns them as a list by `next`, in front of `list`: for unmap.
  Block *release(int64_t before, uint64_t keep, BlockRecords &records, Block *list);
  int64_t oldest_after(int64_t time) const;  // of the blocks freed later than `time`; 0: none is
  uint64_t cached() const { return cached_; }
  uint64_t largest() const;

 private:
  static constexpr uint32_t kWords = FreeLists::kWords;
  Block *find(uint64_t bytes) const;
  Block *smallest(uint32_t cls, uint64_t bytes, int tries) const;
  void list(Block *block);
  void unlist(Block *block);
  void enqueue(Block *block);
  void dequeue(Block *block);
  void merge(Block *low, BlockRecords &records);
  void merge_all(BlockRecords &records);
  Block *cut(Block *block, char *from, char *to, BlockRecords &records);

  bool huge() const { return page_ >= kHugePage; }

  const uint64_t grain_, page_, growth_;
  FreeLists &lists_;
  uint64_t cached_ = 0;
  Block *oldest_ = nullptr, *newest_ = nullptr;
  Block *lowest_ = nullptr;  // of the range that grew last
  bool merged_ = true;       // no free blocks are neighbours, as far as `merge_all` left them
};

// Unmaps a list that `release` returned; its records stay a list.
void unmap_all(const Block *list);

}  // namespace plait::core
