// libplait_core: memory, threads and random positions on the host. No kernels, no Python.
#include "core.hpp"

#ifndef PLAIT_CORE_VERSION
#define PLAIT_CORE_VERSION "0.2.0"
#endif

namespace {

plait_status init(const plait_runtime *runtime, const plait_plugin *self) {
  plait_thread *thread = runtime->thread();
  const plait_header *tables[] = {&plait::core::caching_allocator()->h,
                                  &plait::core::thread_pool()->h,
                                  &plait::core::random_stream(runtime)->h};
  const char *roles[] = {"allocator", "executor", "rng"};
  for (int i = 0; i < 3; i++) {
    uint64_t undo = 0;
    const plait_status s = runtime->provide(thread, roles[i], kDLCPU, tables[i], self, &undo);
    if (s != PLAIT_OK) return s;
  }
  return PLAIT_OK;
}

void stop() {
  plait::core::stop_memory_timer();
  plait::core::stop_thread_pool();
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) extern const plait_plugin plait_plugin_v1;
const plait_plugin plait_plugin_v1 = {PLAIT_HEADER(plait_plugin), "plait_core", PLAIT_CORE_VERSION,
                                      PLAIT_PLUGIN_DEFAULT,       init,         stop};

}  // extern "C"
