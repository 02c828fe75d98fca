/* The least that a device brings: memory, copies, and not one kernel. It works as it is called.
 * bare_device_decline gives it kernels that serve no call. */
#include <plait/abi.h>
#include <stdlib.h>
#include <string.h>

#define TYPE kDLHexagon

static int32_t count(void *ctx) { return (void)ctx, 1; }
static plait_status copy(void *ctx, plait_thread *thread, void *dst, DLDevice to, const void *src,
                         DLDevice from, uint64_t nbytes, plait_stream *stream, uint64_t flags) {
  (void)ctx, (void)thread, (void)to, (void)from, (void)stream, (void)flags;
  memcpy(dst, src, nbytes);
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
                                    .name = "bare",
                                    .count = count,
                                    .copy = copy,
                                    .synchronize = synchronize,
                                    .stream_synchronize = stream_synchronize};

static plait_status take(void *ctx, DLDevice d, uint64_t nbytes, plait_stream *stream, void **data,
                         void **block) {
  (void)ctx, (void)d, (void)stream;
  *data = *block = aligned_alloc(64, (nbytes + 64) / 64 * 64);
  return *data ? PLAIT_OK : PLAIT_MEMORY_ERROR;
}
static void give(void *ctx, void *data, uint64_t nbytes, void *block) {
  (void)ctx, (void)data, (void)nbytes;
  free(block);
}
static const plait_allocator allocator = {
    .h = PLAIT_HEADER(plait_allocator), .name = "bare", .alloc = take, .free = give};

static const plait_runtime *rt;
static plait_status decline(plait_call *call) { return (void)call, PLAIT_DECLINE; }
__attribute__((visibility("default"))) int bare_device_decline(const char *name, uint64_t *undo) {
  return rt->implement_named(rt->thread(), name, TYPE, decline, NULL, NULL, undo);
}
__attribute__((visibility("default"))) int bare_device_retract(uint64_t undo) {
  return rt->retract(rt->thread(), undo);
}

static plait_status init(const plait_runtime *runtime, const plait_plugin *self) {
  rt = runtime;
  plait_thread *thread = rt->thread();
  const plait_status s = rt->provide(thread, "device", TYPE, &device.h, self, NULL);
  return s < 0 ? s : rt->provide(thread, "allocator", TYPE, &allocator.h, self, NULL);
}
__attribute__((visibility("default"))) const plait_plugin plait_plugin_v1 = {
    PLAIT_HEADER(plait_plugin), "bare-device", "1.0", 0, init, NULL};
