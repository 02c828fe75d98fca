/* A plug-in that watches: it counts operator calls and the bytes that were allocated, and writes a
 * line at exit when EXAMPLE_OBSERVER_REPORT is set.
 *
 *   cc -std=c11 -O2 -shared -fPIC -I<headers> observer.c -o observer.so */
#include <plait/abi.h>
#include <stdio.h>
#include <stdlib.h>

__attribute__((visibility("default"))) uint64_t example_observer_calls = 0,
                                                example_observer_bytes = 0;

static void begin(void *ctx, const plait_event *event, uint64_t *token) {
  (void)ctx;
  (void)token;
  if (event->kind == PLAIT_EVENT_OP)
    __atomic_fetch_add(&example_observer_calls, 1, __ATOMIC_RELAXED);
  if (event->kind == PLAIT_EVENT_ALLOC)
    __atomic_fetch_add(&example_observer_bytes, event->a, __ATOMIC_RELAXED);
}

static const plait_observer observer = {PLAIT_HEADER(plait_observer), NULL,
                                        PLAIT_EVENT_OP | PLAIT_EVENT_ALLOC, begin, NULL};

static plait_status init(const plait_runtime *runtime, const plait_plugin *self) {
  (void)self;
  return runtime->observe(runtime->thread(), &observer, 1);
}

static void quiesce(void) {
  if (getenv("EXAMPLE_OBSERVER_REPORT"))
    fprintf(stderr, "example-observer: %llu calls, %llu bytes allocated\n",
            (unsigned long long)example_observer_calls, (unsigned long long)example_observer_bytes);
}

__attribute__((visibility("default"))) const plait_plugin plait_plugin_v1 = {
    PLAIT_HEADER(plait_plugin), "example-observer", "1.0", 0, init, quiesce};
