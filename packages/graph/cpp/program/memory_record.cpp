#include "program/memory_record.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <utility>

namespace plait::graph {

thread_local MemoryRecord *MemoryRecord::current;

void *MemoryRecord::take_lent(uint64_t nbytes) {
  return lent_ && nbytes == lent_bytes_ ? std::exchange(lent_, nullptr) : nullptr;
}

void MemoryRecord::add(int64_t nbytes) {
  live_ += nbytes;
  peak_ = std::max(peak_, live_);
}

void MemoryRecord::add_peak(int64_t nbytes) { peak_ = std::max(peak_, live_ + nbytes); }

namespace {

std::atomic<uint64_t> limit{0}, used{0};
const plait_allocator *memory_below;
const plait_executor *threads_below;
plait_allocator counting_memory;
plait_executor counting_threads;
char lent;  // its address is the block of lent memory

plait_status count_alloc(void *ctx, DLDevice device, uint64_t nbytes, plait_stream *stream,
                         void **data, void **block) {
  MemoryRecord *record = MemoryRecord::current;
  if (void *known = record ? record->take_lent(nbytes) : nullptr) {
    *data = known;
    *block = &lent;
    return PLAIT_OK;
  }
  const uint64_t most = limit.load(std::memory_order_relaxed);
  const uint64_t before = used.fetch_add(nbytes, std::memory_order_relaxed);
  plait_status s = PLAIT_MEMORY_ERROR;
  if (most && (nbytes > most || before > most - nbytes))
    runtime->raise(runtime->thread(), s, nullptr,
                   "%llu bytes are requested; the memory limit is %llu bytes, of which %llu are in "
                   "use",
                   static_cast<unsigned long long>(nbytes), static_cast<unsigned long long>(most),
                   static_cast<unsigned long long>(before));
  else
    s = memory_below->alloc(ctx, device, nbytes, stream, data, block);
  if (s < 0)
    used.fetch_sub(nbytes, std::memory_order_relaxed);
  else if (record)
    record->add(int64_t(nbytes));
  return s;
}

void count_free(void *ctx, void *data, uint64_t nbytes, void *block) {
  if (block == &lent) return;
  memory_below->free(ctx, data, nbytes, block);
  used.fetch_sub(nbytes, std::memory_order_relaxed);
  if (MemoryRecord::current) MemoryRecord::current->add(-int64_t(nbytes));
}

struct Loop {
  void (*fn)(void *arg, uint64_t i);
  void *arg;
  std::atomic<int64_t> most{0};  // bytes of a part
};

void count_part(void *arg, uint64_t i) {
  auto *loop = static_cast<Loop *>(arg);
  const MemoryRecord record;
  loop->fn(loop->arg, i);
  int64_t known = loop->most;
  while (record.peak() > known && !loop->most.compare_exchange_weak(known, record.peak())) continue;
}

void count_parallel(void *ctx, uint64_t n, void (*fn)(void *arg, uint64_t i), void *arg) {
  MemoryRecord *record = MemoryRecord::current;
  if (!record) return threads_below->parallel(ctx, n, fn, arg);
  Loop loop{fn, arg};
  const uint64_t width = threads_below->width(ctx);
  threads_below->parallel(ctx, n, count_part, &loop);
  record->add_peak(int64_t(std::min(n, width)) * loop.most);
}

template <class T>
void copy_table(T *to, const T *from, const char *name) {
  std::memcpy(to, from, std::min<size_t>(from->h.size, sizeof *to));
  to->h.size = uint32_t(std::min<size_t>(from->h.size, sizeof *to));
  to->name = name;
}

}  // namespace

void count_memory() {
  static std::mutex starts;
  const std::lock_guard<std::mutex> lock(starts);
  plait_thread *thread = runtime->thread();
  if (!memory_below) {
    memory_below = role<plait_allocator>(runtime, kDLCPU);
    copy_table(&counting_memory, memory_below, "counting");
    counting_memory.alloc = count_alloc;
    counting_memory.free = count_free;
    check(runtime->provide(thread, "allocator", kDLCPU, &counting_memory.h, plugin, nullptr));
  }
  if (threads_below) return;
  threads_below = role<plait_executor>(runtime);
  copy_table(&counting_threads, threads_below, "counting");
  counting_threads.parallel = count_parallel;
  check(runtime->provide(thread, "executor", kDLCPU, &counting_threads.h, plugin, nullptr));
}

void set_memory_limit(uint64_t nbytes) {
  count_memory();
  limit = nbytes;
}

uint64_t memory_limit() { return limit; }
uint64_t used_memory() { return used; }

}  // namespace plait::graph
