// Role "allocator" for the CPU: a cache of recycled memory. New pages from the system are slow, so
// freed blocks go to lists by size and are used again at once, on any thread.
#include <pthread.h>

#include <cstdlib>
#include <cstring>

#include "core.hpp"
#include "pages.hpp"
#include "poison.hpp"
#include "sizes.hpp"
#include "slabs.hpp"

namespace plait::core {
namespace {

constexpr uint32_t kEmptySlabs = 4;   // cached beside the one block that each class keeps
constexpr uint32_t kNearby = 2;  // classes above the exact one that may serve a large request

struct LargeClass {
  void *free = nullptr;  // each block holds the address of the next
  uint64_t blocks = 0, used = 0;  // used: the clock at the last request for a block of this class
};

class Cache {
 public:
  plait_status alloc(uint64_t nbytes, void **data, void **block);
  void free(void *data, uint64_t nbytes, void *block);
  void trim();
  void stats(plait_alloc_stats *out);
  void lock_all();
  void unlock_all();

 private:
  void *take_large(uint32_t *cls);
  void *map_or_trim(uint64_t bytes);
  Slab *new_slab();
  void drop_slab(Slab *slab, uint32_t keep);
  void evict(uint64_t limit);
  void note_peak();
  uint64_t limit();

  SlabClass small_[kSmallClasses];
  SpinLock
      lock_;  // guards all below; never taken before a class's lock is released, except by lock_all
  LargeClass large_[kLargeClasses];
  Slab *empty_ = nullptr;
  uint32_t empty_count_ = 0;
  uint64_t slab_bytes_ = 0, large_live_ = 0, large_blocks_ = 0, large_taken_ = 0;
  uint64_t cached_ = 0, peak_ = 0, mapped_ = 0, clock_ = 0, limit_ = 0;
};

// A block's handle: the slab it was cut from, or a large block's class as an odd number.
void *handle(uint32_t large) { return reinterpret_cast<void *>(uintptr_t(large) << 1 | 1); }

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

void *Cache::map_or_trim(uint64_t bytes) {
  void *p = map_pages(bytes);
  if (!p) {
    evict(0);
    p = map_pages(bytes);
  }
  if (p) mapped_++;
  return p;
}

Slab *Cache::new_slab() {
  Guard guard(lock_);
  Slab *slab = empty_;
  if (slab) {
    empty_ = slab->next;
    empty_count_--;
    cached_ -= kSlabBytes;
  } else {
    slab = static_cast<Slab *>(map_or_trim(kSlabBytes));
    if (!slab) return nullptr;
  }
  slab_bytes_ += kSlabBytes;
  note_peak();
  return slab;
}

void Cache::drop_slab(Slab *slab, uint32_t keep) {
  Guard guard(lock_);
  slab_bytes_ -= kSlabBytes;
  if (empty_count_ < keep) {
    slab->next = empty_;
    empty_ = slab;
    empty_count_++;
    cached_ += kSlabBytes;
  } else {
    PLAIT_UNPOISON(slab, kSlabBytes);
    unmap_pages(slab, kSlabBytes);
  }
}

void *Cache::take_large(uint32_t *cls) {
  const uint32_t exact = *cls;
  large_[exact].used = ++clock_;
  for (uint32_t c = exact; c <= exact + kNearby && c < kLargeClasses; c++) {
    void *p = large_[c].free;
    if (!p) continue;
    large_[c].free = next_free(p);
    large_[c].blocks--;
    cached_ -= large_size(c);
    *cls = c;
    return p;
  }
  return map_or_trim(large_size(exact));
}

plait_status Cache::alloc(uint64_t nbytes, void **data, void **block) {
  if (__builtin_expect(nbytes <= kSmallLimit, 1)) {
    const uint32_t c = small_class(nbytes);
    SlabClass &cls = small_[c];
    Slab *slab = nullptr;
    cls.lock();
    void *p = cls.take(&slab);
    cls.unlock();
    while (!p) {
      Slab *fresh = new_slab();
      if (!fresh) return PLAIT_MEMORY_ERROR;
      cls.lock();
      cls.add(fresh, c);
      p = cls.take(&slab);
      cls.unlock();
    }
    PLAIT_UNPOISON(p, nbytes);
    *data = p;
    *block = slab;
    return PLAIT_OK;
  }
  if (nbytes > kMaxBytes) return PLAIT_MEMORY_ERROR;
  uint32_t c = large_class(nbytes);
  Guard guard(lock_);
  void *p = take_large(&c);
  if (!p) return PLAIT_MEMORY_ERROR;
  large_live_ += large_size(c);
  large_blocks_++;
  large_taken_++;
  note_peak();
  PLAIT_UNPOISON(p, nbytes);
  *data = p;
  *block = handle(c);
  return PLAIT_OK;
}

void Cache::free(void *data, uint64_t nbytes, void *block) {
  (void)nbytes;
  const uintptr_t tag = reinterpret_cast<uintptr_t>(block);
  if (__builtin_expect(!(tag & 1), 1)) {
    Slab *slab = static_cast<Slab *>(block);
    SlabClass &cls = small_[slab->cls];
    PLAIT_POISON(data, small_size(slab->cls));
    cls.lock();
    const bool empty = cls.give(slab, data);
    cls.unlock();
    if (empty) drop_slab(slab, kEmptySlabs);
    return;
  }
  const uint32_t c = uint32_t(tag >> 1);
  const uint64_t size = large_size(c);
  PLAIT_POISON(data, size);
  Guard guard(lock_);
  large_live_ -= size;
  large_blocks_--;
  set_next_free(data, large_[c].free);
  large_[c].free = data;
  large_[c].blocks++;
  cached_ += size;
  if (cached_ > limit()) evict(limit());
}

// Returns large blocks to the system, least recently used class first, until at most `limit` bytes
// are cached.
void Cache::evict(uint64_t limit) {
  while (cached_ > limit) {
    LargeClass *oldest = nullptr;
    for (LargeClass &l : large_)
      if (l.free && (!oldest || l.used < oldest->used)) oldest = &l;
    if (!oldest) return;
    void *p = oldest->free;
    const uint64_t size = large_size(uint32_t(oldest - large_));
    oldest->free = next_free(p);
    oldest->blocks--;
    cached_ -= size;
    PLAIT_UNPOISON(p, size);
    unmap_pages(p, size);
  }
}

void Cache::trim() {
  for (SlabClass &cls : small_)
    for (;;) {
      cls.lock();
      Slab *slab = cls.remove_empty();
      cls.unlock();
      if (!slab) break;
      drop_slab(slab, 0);
    }
  Guard guard(lock_);
  while (Slab *slab = empty_) {
    empty_ = slab->next;
    cached_ -= kSlabBytes;
    PLAIT_UNPOISON(slab, kSlabBytes);
    unmap_pages(slab, kSlabBytes);
  }
  empty_count_ = 0;
  evict(0);
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
  out->live_blocks += large_blocks_;
  out->allocations += large_taken_;
  out->cached_bytes = cached_ + held;  // includes the free blocks inside slabs
  out->peak_bytes = peak_;
  out->system_allocations = mapped_;
  for (uint32_t c = 0; c < kLargeClasses; c++)
    if (large_[c].free) out->largest_cached = large_size(c);
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

plait_status cache_alloc(void *, DLDevice, uint64_t nbytes, plait_stream *, void **data,
                         void **block) {
  return cache.alloc(nbytes, data, block);
}
void cache_free(void *, void *data, uint64_t nbytes, void *block) {
  cache.free(data, nbytes, block);
}
void cache_trim(void *) { cache.trim(); }
void cache_stats(void *, plait_alloc_stats *out) {
  plait_alloc_stats all{};
  all.size = out->size;
  cache.stats(&all);
  std::memcpy(out, &all, out->size < sizeof all ? out->size : sizeof all);
}

const plait_allocator kTable = {PLAIT_HEADER(plait_allocator),
                                "plait_core.cache",
                                nullptr,
                                cache_alloc,
                                cache_free,
                                cache_trim,
                                cache_stats,
                                65,  // up to 64 bytes may live beside their storage object
                                nullptr};

}  // namespace

const plait_allocator *caching_allocator() {
  // A fork while another thread holds a lock must not leave the child with a lock that is never
  // released.
  static const int once = pthread_atfork([] { cache.lock_all(); }, [] { cache.unlock_all(); },
                                         [] { cache.unlock_all(); });
  (void)once;
  return &kTable;
}

}  // namespace plait::core
