/* An executor for benchmarks/cores.py: it runs the pieces of each job one after the other, and
 * writes down when the job began and ended and how long each piece took, in nanoseconds of the
 * monotonic clock. Kernels cut their work as for `recording_width` threads. `recording_cost` times
 * jobs on the executor that was there before.
 *
 *   cc -std=gnu11 -O2 -shared -fPIC -I<headers> recording_executor.c -o recording_executor.so */
#include <plait/abi.h>
#include <time.h>

#define PUBLIC __attribute__((visibility("default")))
enum { JOBS = 1 << 20, PIECES = 1 << 24 };

typedef struct job {
  uint64_t begin, end, pieces, first; /* `first`: where its pieces begin in recording_pieces */
} job;

PUBLIC job recording_jobs[JOBS];
PUBLIC float recording_pieces[PIECES];
PUBLIC uint64_t recording_job_count = 0, recording_piece_count = 0;
PUBLIC uint32_t recording_width = 64, recording_on = 0;

static int nested = 0; /* the benchmark has one thread that calls operators */

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint32_t width(void *ctx) {
  (void)ctx;
  return nested ? 1 : recording_width;
}

static void set_width(void *ctx, uint32_t n) {
  (void)ctx;
  recording_width = n;
}

static void parallel(void *ctx, uint64_t n, void (*fn)(void *, uint64_t), void *arg) {
  (void)ctx;
  const int room = recording_job_count < JOBS && n <= PIECES - recording_piece_count;
  if (nested || !recording_on || !room) {
    for (uint64_t i = 0; i < n; i++) fn(arg, i);
    return;
  }
  nested = 1;
  job *j = &recording_jobs[recording_job_count++];
  float *pieces = &recording_pieces[recording_piece_count];
  j->first = recording_piece_count;
  j->pieces = n;
  recording_piece_count += n;
  uint64_t last = j->begin = now();
  for (uint64_t i = 0; i < n; i++) {
    fn(arg, i);
    const uint64_t time = now();
    pieces[i] = (float)(time - last);
    last = time;
  }
  j->end = last;
  nested = 0;
}

static const plait_executor executor = {
    PLAIT_HEADER(plait_executor), "recording", NULL, width, parallel, set_width};

static const plait_executor *before = NULL;

static void spin(void *arg, uint64_t i) {
  (void)i;
  const uint64_t end = now() + *(uint64_t *)arg;
  while (now() < end) continue;
}

/* The nanoseconds that a job with a piece of `each` nanoseconds for each of `threads` threads takes
 * longer than one piece, a mean. */
PUBLIC double recording_cost(uint32_t threads, uint64_t each) {
  enum { TIMES = 2000 };
  before->set_width(before->ctx, threads);
  before->parallel(before->ctx, threads, spin, &each);
  const uint64_t begin = now();
  for (int i = 0; i < TIMES; i++) before->parallel(before->ctx, threads, spin, &each);
  return (double)(now() - begin) / TIMES - (double)each;
}

static plait_status init(const plait_runtime *runtime, const plait_plugin *self) {
  before = PLAIT_ROLE(plait_executor, runtime->role("executor", 0));
  return runtime->provide(runtime->thread(), "executor", 0, &executor.h, self, NULL);
}

PUBLIC const plait_plugin plait_plugin_v1 = {
    PLAIT_HEADER(plait_plugin), "recording-executor", "1.0", 0, init, NULL};
