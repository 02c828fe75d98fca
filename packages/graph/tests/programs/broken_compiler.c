/* A compiler whose first program is refused, and whose others have no results. */
#include <plait/compiler.h>
#include <stdlib.h>
static const plait_runtime *rt;
static plait_status create(void *c, plait_thread *t, const char *g, uint64_t n,
                           plait_compiled **p) {
  (void)c, (void)g, (void)n;
  static int calls = 0;
  if (!calls++) return rt->raise(t, PLAIT_VALUE_ERROR, "broken", "no register is free");
  *p = malloc(1);
  return PLAIT_OK;
}
static plait_status bind(void *c, plait_thread *t, plait_compiled *p, plait_tensor *const *w,
                         uint64_t n) {
  (void)c, (void)t, (void)p, (void)w, (void)n;
  return PLAIT_OK;
}
static plait_status run(void *c, plait_thread *t, plait_compiled *p, plait_tensor *const *x,
                        uint64_t n, plait_tensor **y, uint64_t m) {
  (void)c, (void)t, (void)p, (void)x, (void)n, (void)y, (void)m;
  return PLAIT_OK;
}
static plait_status number(void *c, plait_thread *t, plait_compiled *p, uint32_t i, double *v) {
  (void)c, (void)t, (void)p, (void)i, (void)v;
  return PLAIT_OK;
}
static plait_status set_number(void *c, plait_thread *t, plait_compiled *p, uint32_t i, double v) {
  (void)c, (void)t, (void)p, (void)i, (void)v;
  return PLAIT_OK;
}
static uint64_t planned(void *c, plait_compiled *p) { return (void)c, (void)p, 0; }
static void release(void *c, plait_compiled *p) { (void)c, free(p); }
static plait_compiler table = {PLAIT_HEADER(plait_compiler),
                               "broken",
                               NULL,
                               create,
                               bind,
                               run,
                               number,
                               set_number,
                               planned,
                               release};
__attribute__((visibility("default"))) void take_function(void) { table.run = NULL; }
static plait_status init(const plait_runtime *runtime, const plait_plugin *self) {
  rt = runtime;
  return runtime->provide(runtime->thread(), "compiler", 0, &table.h, self, NULL);
}
__attribute__((visibility("default"))) const plait_plugin plait_plugin_v1 = {
    PLAIT_HEADER(plait_plugin), "broken-compiler", "1.0", 0, init, NULL};
