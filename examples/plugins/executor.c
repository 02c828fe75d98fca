/* A plug-in that brings another executor: one thread is started for each piece of work beyond the
 * caller's. It is slow and simple on purpose; what it shows is that nothing else needs to know.
 *
 *   cc -std=c11 -O2 -shared -fPIC -I<headers> executor.c -o executor.so -lpthread */
#include <plait/abi.h>
#include <pthread.h>

enum { MOST = 16 };
static uint32_t threads = 2;

__attribute__((visibility("default"))) uint64_t example_executor_regions = 0,
                                                example_executor_pieces = 0;

typedef struct work {
  uint64_t n, next; /* next is claimed atomically */
  void (*fn)(void *, uint64_t);
  void *arg;
} work;

static _Thread_local int nested = 0; /* a piece of work that asks for more runs it itself */

static void *run(void *p) {
  work *w = p;
  nested++;
  for (uint64_t i; (i = __atomic_fetch_add(&w->next, 1, __ATOMIC_RELAXED)) < w->n;) {
    w->fn(w->arg, i);
    __atomic_fetch_add(&example_executor_pieces, 1, __ATOMIC_RELAXED);
  }
  nested--;
  return NULL;
}

static uint32_t width(void *ctx) {
  (void)ctx;
  return nested ? 1 : threads;
}

static void set_width(void *ctx, uint32_t n) {
  (void)ctx;
  threads = n < 1 ? 1 : n > MOST ? MOST : n;
}

static void parallel(void *ctx, uint64_t n, void (*fn)(void *, uint64_t), void *arg) {
  (void)ctx;
  work w = {n, 0, fn, arg};
  pthread_t started[MOST];
  uint32_t count = 0;
  if (!nested && n > 1)
    while (count + 1 < threads && count + 1 < n &&
           pthread_create(&started[count], NULL, run, &w) == 0)
      count++;
  __atomic_fetch_add(&example_executor_regions, 1, __ATOMIC_RELAXED);
  run(&w);
  while (count) pthread_join(started[--count], NULL);
}

static const plait_executor executor = {
    PLAIT_HEADER(plait_executor), "thread a piece", NULL, width, parallel, set_width};

static plait_status init(const plait_runtime *runtime, const plait_plugin *self) {
  return runtime->provide(runtime->thread(), "executor", 0, &executor.h, self, NULL);
}

__attribute__((visibility("default"))) const plait_plugin plait_plugin_v1 = {
    PLAIT_HEADER(plait_plugin), "example-executor", "1.0", 0, init, NULL};
