// The libraries of plait, which are looked for in folders and opened by path.
#pragma once
#include <dlfcn.h>

#include "call.hpp"

namespace plait::node {

// Loads them, once for the process.
void load_libraries(const std::string &folders);
// The runtime, and the engine in force; without `load_libraries` before, errors.
const plait_runtime *runtime();
const plait_engine *engine();
plait_thread *thread();
// Throws the text that the thread has.
void check_status(plait_status status);

void *open_library(const std::string &folders, const std::string &package, const std::string &name);
// The path of lib<name>.so, or "": in each folder, or in <package>/lib there.
std::string find_library(const std::string &folders, const std::string &package,
                         const std::string &name);

template <class F>
void find(void *library, const char *name, F *function) {
  *function = reinterpret_cast<F>(dlsym(library, name));
  if (!*function) fail(PLAIT_ERROR, std::string("the library has no function ") + name);
}

}  // namespace plait::node
