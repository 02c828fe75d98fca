#include "run/start.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>

#include "graph.hpp"
#include "run/libraries.hpp"

namespace plait::graph {
namespace {

std::mutex starts;

}  // namespace

void start_runtime(const char *folders) {
  const std::lock_guard<std::mutex> lock(starts);
  const plait_runtime *loaded = load_libraries(folders);
  if (!runtime) runtime = loaded;
}

void load_device(const std::string &name) {
  const std::lock_guard<std::mutex> lock(starts);
  load_device_library(name);
}

void set_threads(uint32_t n) {
  const plait_executor *executor = role<plait_executor>(runtime);
  if (!PLAIT_HAS(plait_executor, executor, set_width))
    throw StartError("the number of threads of this process is fixed");
  executor->set_width(executor->ctx, n);
}

namespace {

// An allocator that counts what the one below it gives.
const plait_allocator *below;
plait_allocator limited;
std::atomic<uint64_t> limit{0}, used{0};

plait_status limited_alloc(void *ctx, DLDevice device, uint64_t nbytes, plait_stream *stream,
                           void **data, void **block) {
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
    s = below->alloc(ctx, device, nbytes, stream, data, block);
  if (s < 0) used.fetch_sub(nbytes, std::memory_order_relaxed);
  return s;
}

void limited_free(void *ctx, void *data, uint64_t nbytes, void *block) {
  below->free(ctx, data, nbytes, block);
  used.fetch_sub(nbytes, std::memory_order_relaxed);
}

}  // namespace

void set_memory_limit(uint64_t nbytes) {
  const std::lock_guard<std::mutex> lock(starts);
  limit = nbytes;
  if (below) return;
  const auto *current = role<plait_allocator>(runtime, kDLCPU);
  std::memcpy(&limited, current, std::min<size_t>(current->h.size, sizeof limited));
  limited.h.size = uint32_t(std::min<size_t>(current->h.size, sizeof limited));
  limited.name = "limited";
  limited.alloc = limited_alloc;
  limited.free = limited_free;
  below = current;
  plait_thread *thread = runtime->thread();
  if (runtime->provide(thread, "allocator", kDLCPU, &limited.h, plugin, nullptr) >= 0) return;
  below = nullptr;
  throw StartError(thread->error ? thread->error->message : "no allocator can be registered");
}

}  // namespace plait::graph
