/* What a call costs from C to C: an operator with an empty kernel and no result, so that only
 * dispatch is timed; with nothing, with a pass-through layer, with an observer, and with an
 * observer that was switched off again. cc -std=c11 -O2 -I<headers> dispatch.c <libplait_abi.so> -o
 * dispatch && ./dispatch */
#define _POSIX_C_SOURCE 200809L
#include <plait/abi.h>
#include <stdio.h>
#include <time.h>

static plait_status shape(plait_call *c) {
  return c->in[0].tag == PLAIT_TENSOR ? PLAIT_OK : PLAIT_ERROR;
}
static plait_status kernel(plait_call *c) {
  (void)c;
  return PLAIT_OK;
}
static plait_status pass(plait_call *c) { return c->thread->runtime->call_below(c); }
static void begin(void *ctx, const plait_event *e, uint64_t *token) {
  (void)e;
  *token = ++*(uint64_t *)ctx;
}
static void end(void *ctx, const plait_event *e, uint64_t token, plait_status s) {
  (void)ctx, (void)e, (void)token, (void)s;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e9 + t.tv_nsec;
}

static double nanoseconds(plait_thread *thread, const plait_op *op, plait_tensor *x) {
  enum { N = 200000, ROUNDS = 15 };
  double best = 1e18;
  for (int round = 0; round < ROUNDS; round++) {
    const double start = now();
    for (int i = 0; i < N; i++) {
      plait_value in = {PLAIT_TENSOR, 0, {0}};
      in.u.t = x;
      plait_call c = {.size = sizeof c, .n_in = 1, .op = op, .in = &in, .thread = thread};
      if (thread->runtime->call(&c) < 0) return -1;
    }
    const double each = (now() - start) / N;
    if (each < best) best = each;
  }
  return best;
}

int main(void) {
  const plait_runtime *rt = plait_runtime_v0();
  plait_thread *thread = rt->thread();
  static const plait_op_def def = {.h = PLAIT_HEADER(plait_op_def),
                                   .schema = "bench_nothing(Tensor self) -> ()",
                                   .shape = shape};
  const plait_op *op = NULL;
  plait_tensor *x = NULL;
  const int64_t size = 4;
  const DLDataType f32 = {kDLFloat, 32, 1};
  const DLDevice cpu = {kDLCPU, 0};
  uint32_t bit = 0;
  uint64_t undo = 0, seen = 0;
  if (rt->define(thread, &def, &op) < 0 ||
      rt->implement(thread, op, kDLCPU, kernel, NULL, NULL, &undo) < 0 ||
      rt->tensor_new(thread, f32, 1, &size, NULL, cpu, &x) < 0) {
    fprintf(stderr, "%s\n", thread->error->message);
    return 1;
  }
  const double plain = nanoseconds(thread, op, x);
  printf("dispatch              %6.1f ns\n", plain);
  rt->layer(thread, "bench", 3, &bit);
  rt->implement(thread, op, PLAIT_SLOT_LAYER + bit, pass, NULL, NULL, &undo);
  printf("layer nobody asked for%6.1f ns\n", nanoseconds(thread, op, x));
  x->layers |= (uint64_t)1 << bit;
  printf("pass-through layer    %6.1f ns\n", nanoseconds(thread, op, x));
  x->layers = 0;
  const plait_observer o = {PLAIT_HEADER(plait_observer), &seen, PLAIT_EVENT_OP, begin, end};
  rt->observe(thread, &o, 1);
  printf("observer              %6.1f ns\n", nanoseconds(thread, op, x));
  rt->observe(thread, &o, 0);
  printf("observer off again    %6.1f ns\n", nanoseconds(thread, op, x));
  plait_release(x);
  return 0;
}
