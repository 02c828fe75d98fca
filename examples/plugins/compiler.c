/* A plug-in that brings another compiler of graphs: it counts programs and their runs, declines
 * graphs with sort, and lets plait-graph's own programs compute the others.
 *
 *   cc -std=c11 -O2 -shared -fPIC -I<headers of plait-abi> -I<those of plait-graph> compiler.c
 *      -o compiler.so */
#include <plait/compiler.h>
#include <string.h>

__attribute__((visibility("default"))) uint64_t example_compiler_programs = 0,
                                                example_compiler_runs = 0;

static const plait_runtime *rt;

/* plait-graph's own provider, which is there where graphs are. */
static const plait_compiler *own(void) {
  return (const plait_compiler *)rt->provider("compiler", "plait_graph", 0);
}

static plait_status create(void *ctx, plait_thread *thread, const char *graph, uint64_t nbytes,
                           plait_compiled **program) {
  (void)ctx;
  if (strstr(graph, "\"sort\"")) return PLAIT_DECLINE;
  const plait_status s = own()->create(own()->ctx, thread, graph, nbytes, program);
  if (s == PLAIT_OK) __atomic_fetch_add(&example_compiler_programs, 1, __ATOMIC_RELAXED);
  return s;
}

static plait_status bind(void *ctx, plait_thread *thread, plait_compiled *program,
                         plait_tensor *const *weights, uint64_t n) {
  (void)ctx;
  return own()->bind(own()->ctx, thread, program, weights, n);
}

static plait_status run(void *ctx, plait_thread *thread, plait_compiled *program,
                        plait_tensor *const *inputs, uint64_t n_inputs, plait_tensor **outputs,
                        uint64_t n_outputs) {
  (void)ctx;
  __atomic_fetch_add(&example_compiler_runs, 1, __ATOMIC_RELAXED);
  return own()->run(own()->ctx, thread, program, inputs, n_inputs, outputs, n_outputs);
}

static plait_status number(void *ctx, plait_thread *thread, plait_compiled *program, uint32_t index,
                           double *value) {
  (void)ctx;
  return own()->number(own()->ctx, thread, program, index, value);
}

static plait_status set_number(void *ctx, plait_thread *thread, plait_compiled *program,
                               uint32_t index, double value) {
  (void)ctx;
  return own()->set_number(own()->ctx, thread, program, index, value);
}

static uint64_t planned_bytes(void *ctx, plait_compiled *program) {
  (void)ctx;
  return own()->planned_bytes(own()->ctx, program);
}

static void release(void *ctx, plait_compiled *program) {
  (void)ctx;
  __atomic_fetch_sub(&example_compiler_programs, 1, __ATOMIC_RELAXED);
  own()->release(own()->ctx, program);
}

static const plait_compiler compiler = {.h = PLAIT_HEADER(plait_compiler),
                                        .name = "counting",
                                        .create = create,
                                        .bind = bind,
                                        .run = run,
                                        .number = number,
                                        .set_number = set_number,
                                        .planned_bytes = planned_bytes,
                                        .release = release};

static plait_status init(const plait_runtime *runtime, const plait_plugin *self) {
  rt = runtime;
  return runtime->provide(runtime->thread(), "compiler", 0, &compiler.h, self, NULL);
}

__attribute__((visibility("default"))) const plait_plugin plait_plugin_v1 = {
    PLAIT_HEADER(plait_plugin), "example-compiler", "1.0", 0, init, NULL};
