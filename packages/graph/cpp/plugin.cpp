// The plug-in: it registers nothing before the first capture.
#include <plait/plait.hpp>

#include "graph.hpp"

namespace plait::graph {

const plait_runtime *runtime;
const plait_plugin *plugin;

namespace {
plait_status init(const plait_runtime *r, const plait_plugin *self) {
  runtime = r;
  plugin = self;
  return PLAIT_OK;
}
}  // namespace
}  // namespace plait::graph

extern "C" __attribute__((visibility("default")))
const plait_plugin plait_plugin_v1{PLAIT_HEADER(plait_plugin), "plait_graph",      "0.2.0",
                                   PLAIT_PLUGIN_DEFAULT,       plait::graph::init, nullptr};
