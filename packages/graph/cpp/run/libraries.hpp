// The libraries of plait in a process without Python. A bundle has other definitions of these
// functions, for what is linked into it (docs/design/0056).
#pragma once
#include <string>

#include "graph.hpp"
#include "run/start.hpp"

namespace plait::graph {

// Loads the runtime, the operators and the kernels for this processor, unless that was done before.
// `folders`, separated by colons, are where the libraries lie; NULL: where this one lies.
const plait_runtime *load_libraries(const char *folders);

// Loads the library of a device, such as "cuda", if it is installed.
void load_device_library(const std::string &name);

}  // namespace plait::graph
