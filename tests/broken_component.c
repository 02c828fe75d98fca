/* A component with one function of its table replaced by a wrong one, to see that the conformance
 * kit finds it.
 *
 *   cc ... -DSOURCE='"device.c"' -DBREAK='device.copy = copy_nothing' broken_component.c */
#define plait_plugin_v1 plugin_of_source
#include SOURCE
#undef plait_plugin_v1
#include <stdlib.h>
#include <string.h>

/* what the source has brought, and the same with the mistake */
static plait_device whole_device, broken_device;
static plait_allocator whole_allocator, broken_allocator;
static plait_executor whole_executor, broken_executor;
static plait_kernel broken_kernel; /* in place of all, unless it is NULL */
static plait_runtime wrapped;
static const plait_runtime *whole;

/* ---- devices ---- */
static plait_status copy_nothing(void *ctx, plait_thread *thread, void *to, DLDevice there,
                                 const void *from, DLDevice here, uint64_t nbytes, plait_stream *s,
                                 uint64_t flags) {
  (void)ctx, (void)thread, (void)to, (void)there, (void)from, (void)here, (void)nbytes, (void)s,
      (void)flags;
  return PLAIT_OK;
}
/* all copies are work of the default stream */
static plait_status copy_elsewhere(void *ctx, plait_thread *thread, void *to, DLDevice there,
                                   const void *from, DLDevice here, uint64_t nbytes,
                                   plait_stream *s, uint64_t flags) {
  (void)s;
  return whole_device.copy(ctx, thread, to, there, from, here, nbytes, NULL, flags);
}
static plait_status wait_nothing(void *ctx, plait_thread *thread, plait_device_event *e) {
  (void)ctx, (void)thread, (void)e;
  return PLAIT_OK;
}
static plait_status synchronize_nothing(void *ctx, plait_thread *thread, DLDevice d) {
  (void)ctx, (void)thread, (void)d;
  return PLAIT_OK;
}
static plait_status stream_synchronize_nothing(void *ctx, plait_thread *thread, DLDevice d,
                                               plait_stream *s) {
  (void)ctx, (void)thread, (void)d, (void)s;
  return PLAIT_OK;
}
static plait_status stream_wait_nothing(void *ctx, plait_thread *thread, DLDevice d,
                                        plait_stream *s, plait_device_event *e) {
  (void)ctx, (void)thread, (void)d, (void)s, (void)e;
  return PLAIT_OK;
}
static plait_status always_done(void *ctx, plait_thread *thread, DLDevice d, plait_stream *s,
                                int32_t *done) {
  (void)ctx, (void)thread, (void)d, (void)s;
  *done = 1;
  return PLAIT_OK;
}
static plait_status always_reached(void *ctx, plait_thread *thread, plait_device_event *e,
                                   int32_t *done) {
  (void)ctx, (void)thread, (void)e;
  *done = 1;
  return PLAIT_OK;
}
static int32_t no_error(void *ctx, DLDevice d, plait_device_error *e) {
  plait_device_error taken = {.size = sizeof taken};
  (void)e;
  if (whole_device.take_error) whole_device.take_error(ctx, d, &taken);
  return 0;
}
static int32_t nameless_error(void *ctx, DLDevice d, plait_device_error *e) {
  const int32_t any = whole_device.take_error(ctx, d, e);
  e->launch = 0;
  return any;
}
/* the first block of the memory, whichever is asked for */
static plait_status share_the_first(void *ctx, plait_thread *thread, DLDevice d, void *data,
                                    uint64_t nbytes, plait_shared_memory *memory) {
  const plait_status s = whole_device.share(ctx, thread, d, data, nbytes, memory);
  memory->offset = 0;
  return s;
}
/* memory of this process, in which nobody sees what is written */
static plait_status open_a_copy(void *ctx, plait_thread *thread, DLDevice d,
                                const plait_shared_memory *memory, uint64_t nbytes, void **data,
                                void **opened) {
  (void)memory, (void)thread;
  *opened = NULL;
  return whole_allocator.alloc(ctx, d, nbytes, NULL, data, opened);
}
static plait_status compute_nothing(plait_call *c) {
  (void)c;
  return PLAIT_OK;
}
static plait_kernel whole_kernel;
static plait_status decline_products(plait_call *c) {
  return strcmp(c->op->name, "mm") ? whole_kernel(c) : PLAIT_DECLINE;
}
static int is_double(const plait_value *values, uint16_t n) {
  for (uint16_t i = 0; i < n; i++)
    if (values[i].tag == PLAIT_TENSOR && values[i].u.t->dl.dtype.code == kDLFloat &&
        values[i].u.t->dl.dtype.bits == 64)
      return 1;
  return 0;
}
static plait_status decline_double(plait_call *c) {
  const int declines = is_double(c->in, c->n_in) || is_double(c->out, c->n_out);
  return declines ? PLAIT_DECLINE : whole_kernel(c);
}

/* ---- allocators ---- */
static plait_status misaligned(void *ctx, DLDevice d, uint64_t nbytes, plait_stream *s, void **data,
                               void **block) {
  const plait_status status = whole_allocator.alloc(ctx, d, nbytes + 8, s, data, block);
  if (status == PLAIT_OK) *data = (char *)*data + 8;
  return status;
}
static plait_status overlapping(void *ctx, DLDevice d, uint64_t nbytes, plait_stream *s,
                                void **data, void **block) {
  static char *page;
  static uint64_t at;
  (void)ctx, (void)d, (void)s;
  if (nbytes > 1 << 24) return PLAIT_MEMORY_ERROR;
  if (!page) page = aligned_alloc(64, 1 << 26);
  *data = page + (at++ % 1024) * 64;
  *block = NULL;
  return PLAIT_OK;
}
static void keep(void *ctx, void *data, uint64_t nbytes, void *block) {
  (void)ctx, (void)data, (void)nbytes, (void)block;
}
static plait_status one(void *ctx, DLDevice d, uint64_t nbytes, plait_stream *s, void **data,
                        void **block) {
  const plait_status status = whole_allocator.alloc(ctx, d, nbytes, s, data, block);
  return status == PLAIT_OK ? PLAIT_DECLINE : status;
}
static void count_nothing(void *ctx, DLDevice d, plait_alloc_stats *s) {
  (void)ctx, (void)d, (void)s;
}

/* ---- executors ---- */
static void skip_last(void *ctx, uint64_t n, void (*fn)(void *, uint64_t), void *arg) {
  whole_executor.parallel(ctx, n > 5 ? n - 1 : n, fn, arg);
}
static void repeat_first(void *ctx, uint64_t n, void (*fn)(void *, uint64_t), void *arg) {
  whole_executor.parallel(ctx, n, fn, arg);
  if (n > 5) fn(arg, 0);
}
static uint32_t same_width(void *ctx) {
  (void)ctx;
  return 2;
}

#ifdef PLAIT_COMPILER_H
/* ---- compilers ---- */
static plait_compiler whole_compiler, broken_compiler;

static plait_status run_twice(void *ctx, plait_thread *thread, plait_compiled *program,
                              plait_tensor *const *inputs, uint64_t n_inputs,
                              plait_tensor **outputs, uint64_t n_outputs) {
  const plait_status s =
      whole_compiler.run(ctx, thread, program, inputs, n_inputs, outputs, n_outputs);
  if (s < 0) return s;
  for (uint64_t i = 0; i < n_outputs; i++) plait_release(outputs[i]);
  return whole_compiler.run(ctx, thread, program, inputs, n_inputs, outputs, n_outputs);
}
static plait_status return_input(void *ctx, plait_thread *thread, plait_compiled *program,
                                 plait_tensor *const *inputs, uint64_t n_inputs,
                                 plait_tensor **outputs, uint64_t n_outputs) {
  (void)ctx, (void)thread, (void)program, (void)n_inputs;
  for (uint64_t i = 0; i < n_outputs; i++) plait_retain(outputs[i] = inputs[0]);
  return PLAIT_OK;
}
#endif

static plait_status provide(plait_thread *thread, const char *role, int32_t device_type,
                            const plait_header *table, const plait_plugin *plugin, uint64_t *undo) {
  if (!strcmp(role, "device")) whole_device = *(const plait_device *)table;
  if (!strcmp(role, "allocator")) whole_allocator = *(const plait_allocator *)table;
  if (!strcmp(role, "executor")) whole_executor = *(const plait_executor *)table;
  broken_device = whole_device;
  broken_allocator = whole_allocator;
  broken_executor = whole_executor;
#ifdef PLAIT_COMPILER_H
  if (!strcmp(role, "compiler")) whole_compiler = *(const plait_compiler *)table;
  broken_compiler = whole_compiler;
  if (!strcmp(role, "compiler")) table = &broken_compiler.h;
#endif
  BREAK;
  if (!strcmp(role, "device")) table = &broken_device.h;
  if (!strcmp(role, "allocator")) table = &broken_allocator.h;
  if (!strcmp(role, "executor")) table = &broken_executor.h;
  return whole->provide(thread, role, device_type, table, plugin, undo);
}
static plait_status implement(plait_thread *thread, const plait_op *op, uint32_t slot,
                              plait_kernel fn, void *ctx, const plait_plugin *plugin,
                              uint64_t *undo) {
  whole_kernel = fn;
  return whole->implement(thread, op, slot, broken_kernel ? broken_kernel : fn, ctx, plugin, undo);
}

static plait_status init_broken(const plait_runtime *runtime, const plait_plugin *self) {
  whole = runtime;
  wrapped = *runtime;
  wrapped.provide = provide;
  wrapped.implement = implement;
  return plugin_of_source.init(&wrapped, self);
}
__attribute__((visibility("default"))) const plait_plugin plait_plugin_v1 = {
    PLAIT_HEADER(plait_plugin), "broken", "1.0", 0, init_broken, NULL};
