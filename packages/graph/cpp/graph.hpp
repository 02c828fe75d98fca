// What the files of libplait_graph share (docs/design/0051).
#pragma once
#include <plait/plait.hpp>

namespace plait::graph {

extern const plait_runtime *runtime;  // set when the plug-in is loaded
extern const plait_plugin *plugin;

}  // namespace plait::graph
