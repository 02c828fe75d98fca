// The role "compiler" (plait/compiler.h): programs of another provider, and our own as a provider.
#pragma once
#include <plait/python.h>
#include <pybind11/pybind11.h>

namespace plait::graph {

// Provides plait-graph's own programs as the default, and adds the class of others to the module.
void add_compiler(pybind11::module_ &, const plait_python *);

}  // namespace plait::graph
