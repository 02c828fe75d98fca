/* A plug-in that brings the CPU's memory from malloc, with a guard pattern behind every block that
 * is checked when the block comes back: a small debugging allocator.
 *
 *   cc -std=c11 -O2 -shared -fPIC -I<headers> allocator.c -o allocator.so */
#include <plait/abi.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN = 64, GUARD = 64, PATTERN = 0xA5 };

__attribute__((visibility("default"))) uint64_t example_allocator_live = 0,
                                                example_allocator_peak = 0,
                                                example_allocator_blocks = 0,
                                                example_allocator_damaged = 0;

static plait_status take(void *ctx, DLDevice device, uint64_t nbytes, struct plait_stream *stream,
                         void **data, void **block) {
  (void)ctx, (void)device, (void)stream;
  if (nbytes > (uint64_t)INT64_MAX - GUARD - ALIGN) return PLAIT_MEMORY_ERROR;
  char *p = aligned_alloc(ALIGN, (nbytes + GUARD + ALIGN - 1) / ALIGN * ALIGN);
  if (!p) return PLAIT_MEMORY_ERROR;
  memset(p + nbytes, PATTERN, GUARD);
  *data = *block = p;
  __atomic_fetch_add(&example_allocator_blocks, 1, __ATOMIC_RELAXED);
  const uint64_t live = __atomic_add_fetch(&example_allocator_live, nbytes, __ATOMIC_RELAXED);
  if (live > example_allocator_peak) example_allocator_peak = live;
  return PLAIT_OK;
}

static void give(void *ctx, void *data, uint64_t nbytes, void *block) {
  (void)ctx;
  const unsigned char *guard = (const unsigned char *)data + nbytes;
  for (int i = 0; i < GUARD; i++)
    if (guard[i] != PATTERN) {
      __atomic_fetch_add(&example_allocator_damaged, 1, __ATOMIC_RELAXED);
      break;
    }
  __atomic_fetch_sub(&example_allocator_live, nbytes, __ATOMIC_RELAXED);
  free(block);
}

static void stats(void *ctx, DLDevice d, plait_alloc_stats *s) {
  (void)ctx, (void)d;
  s->live_bytes = example_allocator_live;
  s->peak_bytes = example_allocator_peak;
  s->allocations = s->system_allocations = example_allocator_blocks;
}

/* inline_below 0: even the smallest tensor's bytes come from here */
static const plait_allocator allocator = {.h = PLAIT_HEADER(plait_allocator),
                                          .name = "guarded malloc",
                                          .alloc = take,
                                          .free = give,
                                          .stats = stats};

static plait_status init(const plait_runtime *runtime, const plait_plugin *self) {
  return runtime->provide(runtime->thread(), "allocator", kDLCPU, &allocator.h, self, NULL);
}

__attribute__((visibility("default"))) const plait_plugin plait_plugin_v1 = {
    PLAIT_HEADER(plait_plugin), "example-allocator", "1.0", 0, init, NULL};
