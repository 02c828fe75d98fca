// The plug-in: reserves the layer for all operators and provides the role "engine".
#include <plait/free_threads.h>

#include "forward.hpp"
#include "record.hpp"
#include "role.hpp"

namespace plait::autograd {
namespace {

plait_status init(const plait_runtime *runtime, const plait_plugin *owner) {
  plait_thread *thread = runtime->thread();
  engine.runtime = runtime;
  engine.free_threads = *runtime->settings & PLAIT_SETTING_FREE_THREADS;
  engine.plugin = owner;
  uint32_t bit = 0;
  plait_status s = runtime->layer(thread, "autograd", 32, &bit);
  if (s < 0) return s;
  engine.bit = uint64_t(1) << bit;
  uint64_t undo = 0;
  s = runtime->implement(thread, nullptr, PLAIT_SLOT_LAYER + bit, layer, nullptr, owner, &undo);
  if (s < 0) return s;
  s = start_forward(runtime, owner);
  if (s < 0) return s;
  return runtime->provide(thread, "engine", 0, &role().h, owner, &undo);
}

}  // namespace
}  // namespace plait::autograd

extern "C" __attribute__((visibility("default")))
const plait_plugin plait_plugin_v1{PLAIT_HEADER(plait_plugin), "plait_autograd",      "0.2.0",
                                   PLAIT_PLUGIN_DEFAULT,       plait::autograd::init, nullptr};
