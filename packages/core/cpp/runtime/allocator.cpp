// Role "allocator" for the CPU: a cache of recycled memory. New pages from the system are slow, so
// freed blocks go to lists by size and are used again at once, on any thread.
#include <pthread.h>
#include <time.h>

#include <cstdlib>
#include <cstring>

#include "blocks.hpp"
#include "core.hpp"
#include "pages.hpp"
#include "poison.hpp"
#include "sizes.hpp"
#include "slabs.hpp"
#include "timer.hpp"

namespace plait::core {
namespace {

constexpr uint64_t kLargeLimit = 1 << 20;  // from here on blocks have huge pages
constexpr int64_t kNever = INT64_MAX;
constexpr int64_t kShortestWait = 50000000;  // of the timer, in nanoseconds

int64_t now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
  return int64_t(t.tv_sec) * 1000000000 + t.tv_nsec;
}

class Cache {
 public:
  plait_status alloc(uint64_t nbytes, void **data, void **block);
  void free(void *data, void *block);
  void trim();
  int64_t release_old();  // returns the time until there is more to release, or 0
  void stats(plait_alloc_stats *out);
  void reset_peak();
  void lock_all();
  void unlock_all();

 private:
  BlockPool &pool(uint64_t bytes) { return bytes < kLargeLimit ? small_blocks_ : large_blocks_; }
  uint64_t cached() const { return small_blocks_.cached() + large_blocks_.cached(); }
  Block *take(uint64_t bytes);
  void give(Block *block, uint64_t *counter);
  Block *release(int64_t before, uint64_t keep);
  void unmap(Block *list);
  void *take_small(uint32_t c, Slab **slab);
  bool drop_idle_slabs();
  void note_peak();
  uint64_t limit();

  // Apart, as zeros take no room in a library's file.
  static inline SlabClass small_[kSmallClasses];
  static inline FreeLists small_lists_, large_lists_;
  SpinLock
      lock_;  // guards all below; never taken before a class's lock is released, except by lock_all
  BlockPool small_blocks_{small_lists_, 4 << 10, 4 << 10, 256 << 10};
  BlockPool large_blocks_{large_lists_, 64 << 10, kHugePage, kHugePage};
  BlockRecords records_;
  ReusePeriod period_;
  int64_t slabs_seen_ = 0;  // the timer's alone
  uint64_t slab_bytes_ = 0, large_live_ = 0, large_count_ = 0, large_taken_ = 0;
  uint64_t peak_ = 0, mapped_ = 0, limit_ = 0;
};

extern Timer timer;  // calls release_old

// A block's handle: the slab it was cut from, or a large block's record with the lowest bit set.
void *handle(Block *block) {
  return reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(block) | 1);
}

uint64_t Cache::limit() {  // PLAIT_CACHE_BYTES, else a quarter of the machine's memory
  if (!limit_) {
    const char *text = std::getenv("PLAIT_CACHE_BYTES");
    char *end = nullptr;
    const unsigned long long chosen = text ? std::strtoull(text, &end, 10) : 0;
    limit_ = text && *text && !*end ? chosen + 1 : physical_bytes() / 4 + 1;
  }
  return limit_ - 1;
}

void Cache::note_peak() {
  if (slab_bytes_ + large_live_ > peak_) peak_ = slab_bytes_ + large_live_;
}

Block *Cache::take(uint64_t bytes) {
  const int64_t time = now();
  BlockPool &blocks = pool(bytes);
  Block *block = blocks.take(bytes, records_);
  if (block) {
    period_.reused(time - block->freed, time);
    return block;
  }
  block = blocks.grow(bytes, time, records_);
  if (!block) {  // give all back and try again
    Block *list = release(kNever, 0);
    unmap_all(list);
    records_.give_all(list);
    block = blocks.grow(bytes, time, records_);
    if (!block) return nullptr;
  }
  mapped_++;
  period_.mapped(block->size, time);
  return block;
}

// `counter`: of the bytes in use, of which it is one.
void Cache::give(Block *block, uint64_t *counter) {
  const int64_t time = now();
  Block *list = nullptr;
  int64_t wait = 0;
  PLAIT_POISON(block->data, block->size);
  {
    Guard guard(lock_);
    *counter -= block->size;
    if (counter == &large_live_) large_count_--;
    (block->huge ? large_blocks_ : small_blocks_).give(block, time);
    if (cached() > limit()) list = release(kNever, limit());
    if (!timer.running()) wait = period_.at(time);
  }
  if (wait) timer.start(wait);
  unmap(list);
}

// Takes out what was freed at `before` or earlier, until `keep` bytes are cached.
Block *Cache::release(int64_t before, uint64_t keep) {
  const uint64_t small = small_blocks_.cached();
  Block *list = large_blocks_.release(before, keep > small ? keep - small : 0, records_, nullptr);
  const uint64_t left = large_blocks_.cached();
  return small_blocks_.release(before, keep > left ? keep - left : 0, records_, list);
}

// Called without the lock: to unmap pages takes long.
void Cache::unmap(Block *list) {
  if (!list) return;
  unmap_all(list);
  Guard guard(lock_);
  records_.give_all(list);
}

void *Cache::take_small(uint32_t c, Slab **slab) {
  SlabClass &cls = small_[c];
  cls.lock();
  void *p = cls.take(slab);
  cls.unlock();
  while (__builtin_expect(!p, 0)) {
    Block *block;
    {
      Guard guard(lock_);
      block = take(kSlabBytes);
      if (!block) return nullptr;
      slab_bytes_ += block->size;
      note_peak();
    }
    cls.lock();
    cls.add(block, c);
    p = cls.take(slab);
    cls.unlock();
  }
  return p;
}

plait_status Cache::alloc(uint64_t nbytes, void **data, void **block) {
  if (__builtin_expect(nbytes <= kSmallLimit, 1)) {
    Slab *slab = nullptr;
    void *p = take_small(small_class(nbytes), &slab);
    if (!p) return PLAIT_MEMORY_ERROR;
    PLAIT_UNPOISON(p, nbytes);
    *data = p;
    *block = slab;
    return PLAIT_OK;
  }
  if (nbytes > kMaxBytes) return PLAIT_MEMORY_ERROR;
  Guard guard(lock_);
  Block *taken = take(nbytes);
  if (!taken) return PLAIT_MEMORY_ERROR;
  large_live_ += taken->size;
  large_count_++;
  large_taken_++;
  note_peak();
  PLAIT_UNPOISON(taken->data, nbytes);
  *data = taken->data;
  *block = handle(taken);
  return PLAIT_OK;
}

void Cache::free(void *data, void *block) {
  const uintptr_t tag = reinterpret_cast<uintptr_t>(block);
  if (__builtin_expect(tag & 1, 0)) return give(reinterpret_cast<Block *>(tag ^ 1), &large_live_);
  Slab *slab = static_cast<Slab *>(block);
  SlabClass &cls = small_[slab->cls];
  PLAIT_POISON(data, small_size(slab->cls));
  cls.lock();
  const bool empty = cls.give(slab, data);
  cls.unlock();
  if (empty) give(slab->block, &slab_bytes_);
}

// Of size classes that were not used since the last time. Returns whether others have empty slabs.
bool Cache::drop_idle_slabs() {
  bool others = false;
  for (SlabClass &cls : small_) {
    cls.lock();
    Slab *slab = cls.remove_idle(&others);
    cls.unlock();
    if (slab) give(slab->block, &slab_bytes_);
  }
  return others;
}

int64_t Cache::release_old() {
  const int64_t time = now();
  Block *list;
  int64_t wait = 0, period;
  bool slabs_due;
  {
    Guard guard(lock_);  // an ending thread of the timer may still be here when the next begins
    period = period_.at(time);
    slabs_due = time - slabs_seen_ >= period;
    if (slabs_due) slabs_seen_ = time;
    const uint64_t all = cached();
    const int64_t before = time - period;
    list = release(before, 0);
    if (list) period_.released(all - cached(), list->freed);
    const int64_t a = small_blocks_.oldest_after(before), b = large_blocks_.oldest_after(before),
                  next = a && (!b || a < b) ? a : b;
    // the period fades while the block grows older
    if (next) wait = (next - before) * 4 / 5;
  }
  unmap(list);
  if (slabs_due && drop_idle_slabs() && !wait) wait = period;
  return wait && wait < kShortestWait ? kShortestWait : wait;
}

void Cache::trim() {
  for (SlabClass &cls : small_)
    for (;;) {
      cls.lock();
      Slab *slab = cls.remove_empty();
      cls.unlock();
      if (!slab) break;
      give(slab->block, &slab_bytes_);
    }
  Block *list;
  {
    Guard guard(lock_);
    list = release(kNever, 0);
  }
  unmap(list);
}

void Cache::stats(plait_alloc_stats *out) {
  for (uint32_t c = 0; c < kSmallClasses; c++) {
    SlabClass &cls = small_[c];
    cls.lock();
    out->live_bytes += cls.live * small_size(c);
    out->live_blocks += cls.live;
    out->allocations += cls.taken;
    cls.unlock();
  }
  Guard guard(lock_);
  const uint64_t held =
      slab_bytes_ - (out->live_bytes < slab_bytes_ ? out->live_bytes : slab_bytes_);
  out->live_bytes += large_live_;
  out->live_blocks += large_count_;
  out->allocations += large_taken_;
  out->cached_bytes = cached() + held;  // includes the free blocks inside slabs
  out->peak_bytes = peak_;
  out->system_allocations = mapped_;
  const uint64_t largest = large_blocks_.largest();
  out->largest_cached = largest ? largest : small_blocks_.largest();
}

void Cache::reset_peak() {
  Guard guard(lock_);
  peak_ = slab_bytes_ + large_live_;
}

void Cache::lock_all() {
  for (SlabClass &cls : small_) cls.lock();
  lock_.lock();
}

void Cache::unlock_all() {
  lock_.unlock();
  for (SlabClass &cls : small_) cls.unlock();
}

Cache cache;  // constant-initialised: usable before and after everything else
Timer timer([] { return cache.release_old(); });

plait_status cache_alloc(void *, DLDevice, uint64_t nbytes, plait_stream *, void **data,
                         void **block) {
  return cache.alloc(nbytes, data, block);
}
void cache_free(void *, void *data, uint64_t, void *block) { cache.free(data, block); }
void cache_trim(void *) { cache.trim(); }
void cache_stats(void *, DLDevice, plait_alloc_stats *out) {
  plait_alloc_stats all{};
  all.size = out->size;
  cache.stats(&all);
  std::memcpy(out, &all, out->size < sizeof all ? out->size : sizeof all);
}

void cache_reset_peak(void *, DLDevice) { cache.reset_peak(); }

const plait_allocator kTable = [] {
  plait_allocator t{};
  t.h = PLAIT_HEADER(plait_allocator);
  t.name = "plait_core.cache";
  t.alloc = cache_alloc;
  t.free = cache_free;
  t.trim = cache_trim;
  t.stats = cache_stats;
  t.inline_below = 65;  // up to 64 bytes may live beside their storage object
  t.reset_peak = cache_reset_peak;
  return t;
}();

}  // namespace

const plait_allocator *caching_allocator() {
  // A child has no thread but the one that forked: no lock may be held by another one, and the
  // timer ends before, so that a process with one thread is one while it forks.
  static const int once = pthread_atfork(
      [] {
        timer.pause();
        cache.lock_all();
      },
      [] {
        cache.unlock_all();
        timer.resume();
      },
      [] {
        cache.unlock_all();
        timer.after_fork();
      });
  (void)once;
  return &kTable;
}

void stop_memory_timer() { timer.pause(); }

}  // namespace plait::core
