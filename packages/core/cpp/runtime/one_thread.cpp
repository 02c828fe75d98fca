// The allocator and the executor of a WebAssembly module, which has one thread and memory that only
// grows. `plait_graph.bundle` compiles this file in the place of the thread pool and the caching
// allocator.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "core.hpp"

extern "C" {
// Functions of the system that Emscripten declares, and has not without its JavaScript.
ssize_t getrandom(void *data, size_t nbytes, unsigned) {
  return getentropy(data, nbytes) ? -1 : ssize_t(nbytes);
}
int dl_iterate_phdr(int (*)(struct dl_phdr_info *, size_t, void *), void *) { return 0; }
}

namespace plait::core {
namespace {

constexpr size_t kAlignment = 64;
// Distances within a block fit ptrdiff_t, and no size wraps around when it is rounded up.
constexpr uint64_t kMaxBytes = uint64_t(PTRDIFF_MAX) - kAlignment;

plait_status alloc(void *, DLDevice, uint64_t nbytes, plait_stream *, void **data, void **block) {
  if (nbytes > kMaxBytes) return PLAIT_MEMORY_ERROR;
  *data = *block =
      aligned_alloc(kAlignment, (size_t(nbytes ? nbytes : 1) + kAlignment - 1) & ~(kAlignment - 1));
  return *data ? PLAIT_OK : PLAIT_MEMORY_ERROR;
}
void release(void *, void *data, uint64_t, void *) { std::free(data); }

const plait_allocator kAllocator = [] {
  plait_allocator t{};
  t.h = PLAIT_HEADER(plait_allocator);
  t.name = "plait_core.aligned";
  t.alloc = alloc;
  t.free = release;
  return t;
}();

uint32_t width(void *) { return 1; }
void parallel(void *, uint64_t n, void (*function)(void *, uint64_t), void *argument) {
  for (uint64_t i = 0; i < n; i++) function(argument, i);
}
void set_width(void *, uint32_t) {}

const plait_executor kExecutor = {
    PLAIT_HEADER(plait_executor), "plait_core.serial", nullptr, width, parallel, set_width};

}  // namespace

const plait_allocator *caching_allocator() { return &kAllocator; }
const plait_executor *thread_pool() { return &kExecutor; }
void stop_memory_timer() {}
void stop_thread_pool() {}

}  // namespace plait::core
