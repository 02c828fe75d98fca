// The plug-in: takes the runtime's pointer, and brings the role "communicator" on the CPU.
#include "communicator.hpp"
#include "member.hpp"
#include "table.hpp"

namespace plait::multiprocessing {
namespace {

plait_status init(const plait_runtime *runtime, const plait_plugin *self) {
  start(runtime);
  return runtime->provide(runtime->thread(), "communicator", kDLCPU, &shared_memory.h, self,
                          nullptr);
}

}  // namespace
}  // namespace plait::multiprocessing

extern "C" __attribute__((visibility("default")))
const plait_plugin plait_plugin_v1{PLAIT_HEADER(plait_plugin),
                                   "plait_multiprocessing",
                                   "0.2.0",
                                   PLAIT_PLUGIN_DEFAULT,
                                   plait::multiprocessing::init,
                                   plait::multiprocessing::stop_collectives};
