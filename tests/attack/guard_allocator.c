/* A plug-in that gives each block of the CPU's memory pages of its own between two pages that
 * nobody may touch, so that one byte past a block is a signal at once, not damage that shows later.
 *
 *   cc -std=c11 -O2 -shared -fPIC -I<headers> guard_allocator.c -o guard_allocator.so -lpthread
 *
 * By default a block ends at the upper guard page. The ABI promises 64-byte alignment, so up to 63
 * bytes lie between them; they hold a pattern that is checked when the block comes back, and so
 * does the rest of the first page. GUARD_AT_BEGIN=1 lets blocks begin at the lower guard page
 * instead. A freed block's pages stay unreachable for a while: using it is a signal too. Damage is
 * reported on stderr and aborts.
 *
 * guard_take and guard_give serve memory of any alignment, for arrays that others lend us. */
#define _GNU_SOURCE
#include <plait/abi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ALIGN = 64, PATTERN = 0xA5, FRESH = 0xFF, KEPT = 2048 };
static const uint64_t KEPT_BYTES = 64u << 20, FILLED = 1u << 20;

#define SHOWN __attribute__((visibility("default")))
SHOWN uint64_t guard_live = 0, guard_blocks = 0;

struct block { /* the pages of one block, its guards included */
  char *pages;
  uint64_t bytes;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct block kept[KEPT]; /* freed ones, in a ring */
static uint64_t oldest = 0, kept_count = 0, kept_bytes = 0;
static uint64_t page = 4096;
static int at_begin = 0;

static struct block block_of(const void *data, uint64_t nbytes) {
  const uint64_t inner = (nbytes + ALIGN + page - 1) / page * page;
  const uintptr_t p = (uintptr_t)data;
  struct block b;
  b.bytes = inner + 2 * page;
  if (at_begin) {
    b.pages = (char *)(p - page);
  } else { /* the guard page is the first border at or after the end */
    b.pages = (char *)((p + nbytes + page - 1) / page * page - inner - page);
  }
  return b;
}

static void check(const char *from, const char *to, const char *subject, uint64_t nbytes) {
  for (const char *p = from; p < to; p++)
    if ((unsigned char)*p != PATTERN) {
      fprintf(stderr,
              "guard_allocator: a byte %s a block of %llu bytes was written, %lld bytes off\n",
              subject, (unsigned long long)nbytes,
              (long long)(subject[0] == 'b' ? to - p : p - from + 1));
      abort();
    }
}

SHOWN void *guard_take(uint64_t nbytes, uint64_t align) {
  if (nbytes > (uint64_t)1 << 46) return NULL;
  const uint64_t inner = (nbytes + ALIGN + page - 1) / page * page;
  char *pages = mmap(NULL, inner + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return NULL;
  char *low = pages + page, *high = low + inner;
  if (mprotect(low, inner, PROT_READ | PROT_WRITE) != 0) {
    munmap(pages, inner + 2 * page);
    return NULL;
  }
  char *data = at_begin ? low : high - (nbytes + align - 1) / align * align;
  memset(data, FRESH, nbytes < FILLED ? nbytes : FILLED); /* NaN, which zeros would hide */
  memset(low, PATTERN, (size_t)(data - low));
  memset(data + nbytes, PATTERN, (size_t)(high - data - nbytes));
  __atomic_fetch_add(&guard_blocks, 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(&guard_live, nbytes, __ATOMIC_RELAXED);
  return data;
}

SHOWN void guard_give(void *data, uint64_t nbytes) {
  const struct block b = block_of(data, nbytes);
  char *low = b.pages + page, *high = b.pages + b.bytes - page;
  check(low, data, "before", nbytes);
  check((char *)data + nbytes, high, "after", nbytes);
  __atomic_fetch_sub(&guard_live, nbytes, __ATOMIC_RELAXED);
  /* Fresh unreachable pages take the place of the old ones: their memory is free at once. */
  if (mmap(b.pages, b.bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
      MAP_FAILED) {
    munmap(b.pages, b.bytes);
    return;
  }
  pthread_mutex_lock(&mutex);
  while (kept_count && (kept_count == KEPT || kept_bytes + b.bytes > KEPT_BYTES)) {
    munmap(kept[oldest].pages, kept[oldest].bytes);
    kept_bytes -= kept[oldest].bytes;
    oldest = (oldest + 1) % KEPT;
    kept_count--;
  }
  kept[(oldest + kept_count) % KEPT] = b;
  kept_count++;
  kept_bytes += b.bytes;
  pthread_mutex_unlock(&mutex);
}

static plait_status take(void *ctx, DLDevice device, uint64_t nbytes, struct plait_stream *stream,
                         void **data, void **block) {
  (void)ctx, (void)device, (void)stream;
  *data = *block = guard_take(nbytes, ALIGN);
  return *data ? PLAIT_OK : PLAIT_MEMORY_ERROR;
}

static void give(void *ctx, void *data, uint64_t nbytes, void *block) {
  (void)ctx, (void)block;
  guard_give(data, nbytes);
}

static void trim(void *ctx) {
  (void)ctx;
  pthread_mutex_lock(&mutex);
  for (; kept_count; kept_count--, oldest = (oldest + 1) % KEPT)
    munmap(kept[oldest].pages, kept[oldest].bytes);
  kept_bytes = 0;
  pthread_mutex_unlock(&mutex);
}

static void stats(void *ctx, DLDevice d, plait_alloc_stats *s) {
  (void)ctx, (void)d;
  s->live_bytes = guard_live;
  s->allocations = s->system_allocations = guard_blocks;
}

static const plait_allocator allocator = {.h = PLAIT_HEADER(plait_allocator),
                                          .name = "guard pages",
                                          .alloc = take,
                                          .free = give,
                                          .trim = trim,
                                          .stats = stats};

static plait_status init(const plait_runtime *runtime, const plait_plugin *self) {
  page = (uint64_t)sysconf(_SC_PAGESIZE);
  at_begin = getenv("GUARD_AT_BEGIN") != NULL;
  return runtime->provide(runtime->thread(), "allocator", kDLCPU, &allocator.h, self, NULL);
}

SHOWN const plait_plugin plait_plugin_v1 = {
    PLAIT_HEADER(plait_plugin), "guard-pages", "1", 0, init, NULL};
