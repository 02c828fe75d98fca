// libplait_ops as a plug-in: loading it defines every operator; kernels come from other plug-ins.
#include "library.hpp"

namespace {
plait_status init(const plait_runtime *runtime, const plait_plugin *) {
  plait::ops::take_default_dtype(runtime);
  return plait::ops::define_all(runtime);
}
}  // namespace

extern "C" __attribute__((visibility("default"))) const plait_plugin plait_plugin_v1;
const plait_plugin plait_plugin_v1{PLAIT_HEADER(plait_plugin), "plait_ops", "0.2.0",
                                   PLAIT_PLUGIN_DEFAULT,       init,        nullptr};
