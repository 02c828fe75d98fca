/* A communicator that opens groups without its members knowing each other, says PLAIT_OK to every
 * collective and does nothing; with -DLACKS it has no kind at all. */
#include <plait/abi.h>
#include <stdlib.h>
#include <string.h>

static void drop(plait_object *o) { free(o); }
static const plait_type communicator_type = {PLAIT_HEADER(plait_type), "communicator", drop};
static const plait_type work_type = {PLAIT_HEADER(plait_type), "work", drop};
extern const plait_collectives mute;

static plait_status new_communicator(uint32_t rank, uint32_t size, plait_communicator **out) {
  plait_communicator *c = calloc(1, sizeof *c);
  c->o.refs = 1;
  c->o.type = &communicator_type;
  c->table = &mute;
  c->rank = rank;
  c->size = size;
  *out = c;
  return PLAIT_OK;
}

static plait_status open_group(void *ctx, plait_thread *thread, const char *where, uint32_t rank,
                               uint32_t size, double timeout, plait_communicator **out) {
  (void)ctx, (void)thread, (void)where, (void)timeout;
  return new_communicator(rank, size, out);
}

static plait_status split(void *ctx, plait_thread *thread, plait_communicator *c, int64_t color,
                          int64_t key, plait_communicator **out) {
  (void)ctx, (void)thread, (void)color, (void)key;
  return new_communicator(c->rank / 2, (c->size + 1) / 2, out);
}

static void abort_group(void *ctx, plait_communicator *c, const char *reason) {
  (void)ctx, (void)c, (void)reason;
}

static plait_status start(void *ctx, plait_thread *thread, plait_communicator *c,
                          const plait_collective *call, plait_stream *stream, plait_work **work) {
  (void)ctx, (void)thread, (void)c, (void)call, (void)stream;
#ifdef LACKS
  return thread->runtime->raise(thread, PLAIT_NOT_IMPLEMENTED, "mute", "it has no collectives");
#endif
  if (!work) return PLAIT_OK;
  plait_work *w = calloc(1, sizeof *w);
  w->o.refs = 1;
  w->o.type = &work_type;
  w->table = &mute;
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

const plait_collectives mute = {PLAIT_HEADER(plait_collectives),
                                "mute",
                                NULL,
                                open_group,
                                split,
                                abort_group,
                                start,
                                query,
                                wait_for,
                                NULL};

static plait_status init(const plait_runtime *runtime, const plait_plugin *self) {
  return runtime->provide(runtime->thread(), "communicator", kDLCPU, &mute.h, self, NULL);
}

__attribute__((visibility("default")))
const plait_plugin plait_plugin_v1 = {PLAIT_HEADER(plait_plugin), "mute", "1.0", 0, init, NULL};
