// The runtime in a process without Python: its libraries and threads.
#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>

namespace plait::graph {

struct StartError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Loads the runtime, the operators and the kernels for this processor, unless the process has them.
// `folders`, separated by colons, are where the libraries lie; NULL: where this one lies.
void start_runtime(const char *folders);

// Loads the library of a device, such as "cuda", if it is installed.
void load_device(const std::string &name);

// The number of threads of the process, with the calling one.
void set_threads(uint32_t);

}  // namespace plait::graph
