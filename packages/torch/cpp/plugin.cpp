// libplait_torch: PyTorch's random numbers.
#include "random/generator.hpp"
#include "random/operators.hpp"

namespace plait::pytorch {
namespace {

const plait_plugin *plugin;

plait_status init(const plait_runtime *host_runtime, const plait_plugin *self) {
  runtime = host_runtime;
  plugin = self;
  plait_thread *thread = runtime->thread();
  for (const auto &[name, kernel] : random_operators()) {
    const plait_status s =
        runtime->implement_named(thread, name, kDLCPU, kernel, nullptr, self, nullptr);
    if (s != PLAIT_OK) return s;
  }
  return PLAIT_OK;
}

uint64_t undo;

}  // namespace
}  // namespace plait::pytorch

#define PLAIT_EXPORT extern "C" __attribute__((visibility("default")))

// Puts PyTorch's generator of the CPU in force, or the one from before; 0, or -1 after an error of
// the thread. The caller lets one thread at a time do so.
PLAIT_EXPORT int plait_torch_use_generator(int is_pytorchs) {
  using namespace plait::pytorch;
  plait_thread *thread = runtime->thread();
  if (bool(undo) == bool(is_pytorchs)) return 0;
  if (!is_pytorchs) return runtime->retract(thread, std::exchange(undo, 0)) < 0 ? -1 : 0;
  const plait_rng *table = mt19937();
  return table && runtime->provide(thread, "rng", kDLCPU, &table->h, plugin, &undo) >= 0 ? 0 : -1;
}

PLAIT_EXPORT const plait_plugin plait_plugin_v1{
    PLAIT_HEADER(plait_plugin), "plait_torch", "2.13.0.2", 0, plait::pytorch::init, nullptr};
