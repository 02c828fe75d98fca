/* A plug-in that brings another communicator, "self": groups of one member, who need nobody else.
 * With it a program that is written for many processes runs in one, without shared memory. It has
 * what such a group can have: an output is the input. Its collectives are done when they return.
 *
 *   cc -std=c11 -O2 -shared -fPIC -I<headers> communicator.c -o communicator.so */
#include <plait/abi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const plait_collectives example_self;
__attribute__((visibility("default"))) uint64_t example_communicator_calls = 0;

typedef struct group {
  plait_communicator c;
  char aborted[200]; /* why, or empty */
} group;

static void drop_group(plait_object *o) { free(o); }
static const plait_type group_type = {PLAIT_HEADER(plait_type), "communicator", drop_group};

static plait_status new_group(plait_thread *thread, plait_communicator **out) {
  group *g = calloc(1, sizeof *g);
  if (!g) return thread->runtime->raise(thread, PLAIT_MEMORY_ERROR, "open", "out of memory");
  g->c = (plait_communicator){{1, &group_type}, &example_self, 0, 1};
  *out = &g->c;
  return PLAIT_OK;
}

/* `where` is "self:" and any text, which does not matter */
static plait_status open_group(void *ctx, plait_thread *thread, const char *where, uint32_t rank,
                               uint32_t size, double timeout, plait_communicator **out) {
  (void)ctx, (void)timeout;
  if (strncmp(where, "self:", 5) != 0)
    return thread->runtime->raise(thread, PLAIT_VALUE_ERROR, "open",
                                  "`where` must begin with \"self:\", got \"%s\"", where);
  if (rank != 0 || size != 1)
    return thread->runtime->raise(thread, PLAIT_VALUE_ERROR, "open",
                                  "a group of one member is required, got rank %u of %u", rank,
                                  size);
  return new_group(thread, out);
}

static plait_status split(void *ctx, plait_thread *thread, plait_communicator *c, int64_t color,
                          int64_t key, plait_communicator **out) {
  (void)ctx, (void)c, (void)key;
  *out = NULL;
  return color < 0 ? PLAIT_OK : new_group(thread, out);
}

static void abort_group(void *ctx, plait_communicator *c, const char *reason) {
  (void)ctx;
  snprintf(((group *)c)->aborted, sizeof((group *)c)->aborted, "%s", reason);
}

static uint64_t nbytes(const DLTensor *t) {
  uint64_t n = (uint64_t)t->dtype.bits * t->dtype.lanes / 8;
  for (int32_t i = 0; i < t->ndim; i++) n *= (uint64_t)t->shape[i];
  return n;
}

static plait_status copy(plait_thread *thread, const char *caller, const plait_tensor *in,
                         const plait_tensor *out) {
  const DLTensor *from = &in->dl, *to = &out->dl;
  if (from->device.device_type != kDLCPU || to->device.device_type != kDLCPU)
    return thread->runtime->raise(thread, PLAIT_TYPE_ERROR, caller,
                                  "tensors on the CPU are required");
  if (from->dtype.code != to->dtype.code || from->dtype.bits != to->dtype.bits)
    return thread->runtime->raise(thread, PLAIT_TYPE_ERROR, caller,
                                  "tensors of one dtype are required");
  if (nbytes(from) != nbytes(to))
    return thread->runtime->raise(thread, PLAIT_VALUE_ERROR, caller,
                                  "an output of the size of the input is required");
  if (out->storage->flags & PLAIT_STORAGE_READONLY)
    return thread->runtime->raise(thread, PLAIT_VALUE_ERROR, caller,
                                  "a tensor that may be written is required");
  if (nbytes(from)) memmove(to->data, from->data, nbytes(from));
  return PLAIT_OK;
}

static void drop_work(plait_object *o) { free(o); }
static const plait_type work_type = {PLAIT_HEADER(plait_type), "work", drop_work};

static plait_status start(void *ctx, plait_thread *thread, plait_communicator *c,
                          const plait_collective *call, plait_stream *stream, plait_work **work) {
  (void)ctx, (void)stream;
  static const char *const names[] = {"?",          "all_reduce", "broadcast", "reduce",
                                      "all_gather", "gather",     "scatter",   "reduce_scatter",
                                      "all_to_all", "send",       "recv",      "barrier"};
  const uint32_t kind = call->kind;
  const char *caller = kind <= PLAIT_BARRIER ? names[kind] : "collective";
  if (kind < PLAIT_ALL_REDUCE || kind > PLAIT_BARRIER || kind == PLAIT_SEND ||
      kind == PLAIT_RECEIVE)
    return thread->runtime->raise(thread, PLAIT_NOT_IMPLEMENTED, caller,
                                  "a group of one member has nobody to send to");
  if (((group *)c)->aborted[0])
    return thread->runtime->raise(thread, PLAIT_ERROR, caller, "rank 0 aborted the group: %s",
                                  ((group *)c)->aborted);
  const uint32_t required = kind != PLAIT_BARRIER;
  if (call->n_in != required || call->n_out != required)
    return thread->runtime->raise(thread, PLAIT_VALUE_ERROR, caller,
                                  "%u inputs and outputs are required, got %u and %u", required,
                                  call->n_in, call->n_out);
  plait_status s = required ? copy(thread, caller, call->in[0], call->out[0]) : PLAIT_OK;
  __atomic_fetch_add(&example_communicator_calls, 1, __ATOMIC_RELAXED);
  if (s < 0 || !work) return s;
  plait_work *w = malloc(sizeof *w);
  if (!w) return thread->runtime->raise(thread, PLAIT_MEMORY_ERROR, caller, "out of memory");
  *w = (plait_work){{1, &work_type}, &example_self};
  *work = w;
  return PLAIT_OK;
}

static plait_status query(void *ctx, plait_thread *thread, plait_work *w, int32_t *done) {
  (void)ctx, (void)thread, (void)w;
  *done = 1;
  return PLAIT_OK;
}

static plait_status wait_for(void *ctx, plait_thread *thread, plait_work *w) {
  (void)ctx, (void)thread, (void)w;
  return PLAIT_OK;
}

const plait_collectives example_self = {PLAIT_HEADER(plait_collectives),
                                        "self",
                                        NULL,
                                        open_group,
                                        split,
                                        abort_group,
                                        start,
                                        query,
                                        wait_for,
                                        NULL};  // interrupts are told as aborts

static plait_status init(const plait_runtime *runtime, const plait_plugin *self) {
  return runtime->provide(runtime->thread(), "communicator", kDLCPU, &example_self.h, self, NULL);
}

__attribute__((visibility("default"))) const plait_plugin plait_plugin_v1 = {
    PLAIT_HEADER(plait_plugin), "example-communicator", "1.0", 0, init, NULL};
