// Small blocks: each size class cuts them from slabs of one size and keeps the freed ones in its
// slabs.
#pragma once
#include <cstdint>

#include "lock.hpp"
#include "sizes.hpp"

namespace plait::core {

constexpr uint64_t kSlabBytes = 256 << 10;

struct Block;

struct alignas(64) Slab {
  Slab *next, *previous;  // in its class's list of slabs with free blocks
  void *free;             // freed blocks; each contains the address of the next
  Block *block;           // that it lies in
  uint32_t live, cut, capacity, cls;
};

class SlabClass {
 public:
  void *take(Slab **slab);  // NULL: no slab has a free block
  // true: the slab is empty and unlinked, and belongs to the caller
  bool give(Slab *slab, void *p);
  void add(Block *block, uint32_t cls);
  Slab *remove_empty();  // one at a time; NULL when there are no more
  // The same, if no block was taken since the last call; else `others` tells of an empty slab.
  Slab *remove_idle(bool *others);
  void lock() { lock_.lock(); }
  void unlock() { lock_.unlock(); }
  uint64_t live = 0, taken = 0;

 private:
  Slab *find_empty() const;
  void link(Slab *slab);
  void unlink(Slab *slab);
  Slab *with_space_ = nullptr;
  uint64_t seen_ = 0;
  SpinLock lock_;  // taken by the allocator around every call
};

}  // namespace plait::core
