/* A device with a driver, as that of OpenCL is one: the driver has a thread, which works on after a
 * copy has returned, and ends by itself when the process exits. What uses it then crashes.
 * -DSTARTS_IN_INIT: `init` starts the driver, else its first use. */
#include <plait/abi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TYPE kDLHexagon
#ifndef FLAGS
#define FLAGS 0
#endif

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_t worker;
static int is_started, stops, is_ended;
static struct {
  void *to;
  const void *from;
  uint64_t nbytes;
} job; /* nbytes is 0 when it is done */

static void *serve(void *unused) {
  for (;;) {
    pthread_mutex_lock(&lock);
    if (job.nbytes) memcpy(job.to, job.from, job.nbytes);
    job.nbytes = 0;
    pthread_cond_broadcast(&changed);
    const int has_ended = is_ended, has_stopped = stops;
    pthread_mutex_unlock(&lock);
    if (has_stopped) return unused;
    if (has_ended) abort();
    usleep(100);
  }
}
static void end_driver(void) {
  puts("the driver ended");
  pthread_mutex_lock(&lock);
  is_ended = 1;
  pthread_mutex_unlock(&lock);
  usleep(20000);
}
static void start_driver(void) {
  pthread_mutex_lock(&lock);
  if (!is_started && (pthread_create(&worker, NULL, serve, NULL) || atexit(end_driver))) abort();
  is_started = 1;
  pthread_mutex_unlock(&lock);
}
static void quiesce(void) {
  puts("the plug-in stopped");
  pthread_mutex_lock(&lock);
  stops = 1;
  pthread_mutex_unlock(&lock);
  if (is_started) pthread_join(worker, NULL);
}

static int32_t count(void *ctx) { return (void)ctx, 1; }
static plait_status copy(void *ctx, plait_thread *thread, void *dst, DLDevice to, const void *src,
                         DLDevice from, uint64_t nbytes, plait_stream *stream, uint64_t flags) {
  (void)ctx, (void)thread, (void)to, (void)from, (void)stream, (void)flags;
  start_driver();
  pthread_mutex_lock(&lock);
  job.to = dst;
  job.from = src;
  job.nbytes = nbytes;
  while (job.nbytes) pthread_cond_wait(&changed, &lock);
  pthread_mutex_unlock(&lock);
  return PLAIT_OK;
}
static plait_status synchronize(void *ctx, plait_thread *thread, DLDevice device) {
  return (void)ctx, (void)thread, (void)device, PLAIT_OK;
}
static plait_status stream_synchronize(void *ctx, plait_thread *thread, DLDevice device,
                                       plait_stream *stream) {
  return (void)ctx, (void)thread, (void)device, (void)stream, PLAIT_OK;
}
static const plait_device device = {.h = PLAIT_HEADER(plait_device),
                                    .name = "driver",
                                    .flags = FLAGS,
                                    .count = count,
                                    .copy = copy,
                                    .synchronize = synchronize,
                                    .stream_synchronize = stream_synchronize};

static plait_status take(void *ctx, DLDevice where, uint64_t nbytes, plait_stream *stream,
                         void **data, void **block) {
  (void)ctx, (void)where, (void)stream;
  *data = *block = aligned_alloc(64, (nbytes + 63) / 64 * 64);
  return *data ? PLAIT_OK : PLAIT_MEMORY_ERROR;
}
static void give(void *ctx, void *data, uint64_t nbytes, void *block) {
  (void)ctx, (void)nbytes, (void)block;
  if (is_ended) abort();
  free(data);
}
static const plait_allocator allocator = {
    .h = PLAIT_HEADER(plait_allocator), .name = "driver", .alloc = take, .free = give};

static plait_status init(const plait_runtime *runtime, const plait_plugin *self) {
#ifdef STARTS_IN_INIT
  start_driver();
#endif
  plait_status s = runtime->provide(runtime->thread(), "device", TYPE, &device.h, self, NULL);
  if (s < 0) return s;
  return runtime->provide(runtime->thread(), "allocator", TYPE, &allocator.h, self, NULL);
}

__attribute__((visibility("default")))
const plait_plugin plait_plugin_v1 = {PLAIT_HEADER(plait_plugin), "driver", "1", 0, init, quiesce};
