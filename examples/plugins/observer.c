/* A plug-in that watches: it counts operator calls, the bytes that were allocated, and the time
 * that devices other than the CPU worked, by their own clocks. It writes a line at exit when
 * EXAMPLE_OBSERVER_REPORT is set.
 *
 *   cc -std=c11 -O2 -shared -fPIC -I<headers> observer.c -o observer.so -lpthread */
#include <plait/abi.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))
EXPORT uint64_t example_observer_calls = 0, example_observer_bytes = 0;

static const plait_runtime *rt;

/* A call on a device returns before its work is done. So an event is put before it and one behind
 * it, and the time between them is asked for later, when nobody has to wait. */
enum { MOST = 256 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
  plait_device_event *before, *after;
} calls[MOST];
static int n_calls;
static double milliseconds;

static plait_device_event *mark(const plait_call *call) {
  plait_device_event *event = NULL;
  if (rt->event_new(call->thread, call->device, PLAIT_EVENT_TIMED, &event) < 0) return NULL;
  if (event && rt->event_record(call->thread, event, call->stream) == PLAIT_OK) return event;
  plait_release(event);
  return NULL;
}

static void add_up(plait_thread *thread) { /* with the lock */
  for (int i = 0; i < n_calls; i++) {
    double time = 0;
    if (rt->event_elapsed(thread, calls[i].before, calls[i].after, &time) == PLAIT_OK)
      milliseconds += time;
    plait_release(calls[i].before);
    plait_release(calls[i].after);
  }
  n_calls = 0;
}

EXPORT double example_observer_device_milliseconds(void) { /* waits for the devices */
  pthread_mutex_lock(&lock);
  add_up(rt->thread());
  const double all = milliseconds;
  pthread_mutex_unlock(&lock);
  return all;
}

static int is_timed(const plait_event *event) { /* meta and the CPU have no clock of their own */
  return event->kind == PLAIT_EVENT_OP && event->device.device_type > kDLCPU;
}

static void begin(void *ctx, const plait_event *event, uint64_t *token) {
  (void)ctx;
  if (event->kind == PLAIT_EVENT_ALLOC) {
    __atomic_fetch_add(&example_observer_bytes, event->a, __ATOMIC_RELAXED);
    return;
  }
  __atomic_fetch_add(&example_observer_calls, 1, __ATOMIC_RELAXED);
  *token = is_timed(event) ? (uint64_t)(uintptr_t)mark(event->call) : 0;
}

static void end(void *ctx, const plait_event *event, uint64_t token, plait_status status) {
  (void)ctx;
  plait_device_event *before = (plait_device_event *)(uintptr_t)token;
  if (event->kind != PLAIT_EVENT_OP || !before) return;
  plait_device_event *after = status == PLAIT_OK ? mark(event->call) : NULL;
  if (!after) {
    plait_release(before);
    return;
  }
  pthread_mutex_lock(&lock);
  if (n_calls == MOST) add_up(event->call->thread);
  calls[n_calls].before = before;
  calls[n_calls++].after = after;
  pthread_mutex_unlock(&lock);
}

static const plait_observer observer = {PLAIT_HEADER(plait_observer), NULL,
                                        PLAIT_EVENT_OP | PLAIT_EVENT_ALLOC, begin, end};

static plait_status init(const plait_runtime *runtime, const plait_plugin *self) {
  (void)self;
  rt = runtime;
  return runtime->observe(runtime->thread(), &observer, 1);
}

static void quiesce(void) {
  if (getenv("EXAMPLE_OBSERVER_REPORT"))
    fprintf(stderr, "example-observer: %llu calls, %llu bytes allocated, %.3f ms on devices\n",
            (unsigned long long)example_observer_calls, (unsigned long long)example_observer_bytes,
            milliseconds);
}

EXPORT const plait_plugin plait_plugin_v1 = {
    PLAIT_HEADER(plait_plugin), "example-observer", "1.0", 0, init, quiesce};
