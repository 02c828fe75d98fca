// The plug-in: takes the runtime's pointer. It registers nothing with the runtime.
#include "table.hpp"

namespace plait::multiprocessing {
namespace {

plait_status init(const plait_runtime *runtime, const plait_plugin *) {
  start(runtime);
  return PLAIT_OK;
}

}  // namespace
}  // namespace plait::multiprocessing

extern "C" __attribute__((visibility("default"))) const plait_plugin plait_plugin_v1{
    PLAIT_HEADER(plait_plugin), "plait_multiprocessing",      "0.1.0",
    PLAIT_PLUGIN_DEFAULT,       plait::multiprocessing::init, nullptr};
