// What stand-ins for NVIDIA's libraries use of the emulated driver: their work is a function of the
// host that is put into a stream, so it waits for what comes before and can be recorded in a graph.
#pragma once
#include <dlfcn.h>
#include <cstring>
#include <functional>
#include <string>

#include "driver/types.h"

namespace plait::cuda::emulation {

// A function of the driver beside this library.
template <class F>
F driver_function(const char *name) {
  static void *const library = [] {
    static int here;
    Dl_info info;
    std::string path = dladdr(&here, &info) ? info.dli_fname : "";
    path = path.substr(0, path.rfind('/') + 1) + "libcuda.so.1";
    return dlopen(path.c_str(), RTLD_NOW);
  }();
  void *const found = dlsym(library, name);
  F function;
  memcpy(&function, &found, sizeof found);
  return function;
}

// The bytes behind an address of a device; NULL: they are not in one allocation.
inline char *memory_at(const void *address, size_t bytes) {
  static const auto find =
      driver_function<char *(*)(driver::Address, size_t)>("plait_emulation_memory");
  return find(driver::Address(address), bytes);
}

// Puts work into a stream, as a kernel of that name. Work of a graph may run many times, so it is
// kept.
inline bool put(driver::Stream stream, const char *name, std::function<void()> work) {
  static const auto launch =
      driver_function<driver::Result (*)(driver::Stream, const char *, void (*)(void *), void *)>(
          "plait_emulation_launch");
  static const auto status =
      driver_function<driver::Result (*)(driver::Stream, int *)>("cuStreamIsCapturing");
  int capturing = 0;
  if (status(stream, &capturing)) return false;
  auto *const own = new std::function<void()>(std::move(work));
  const auto keep = [](void *p) { (*static_cast<std::function<void()> *>(p))(); };
  const auto run = [](void *p) {
    (*static_cast<std::function<void()> *>(p))();
    delete static_cast<std::function<void()> *>(p);
  };
  return launch(stream, name, capturing ? static_cast<void (*)(void *)>(keep) : run, own) ==
         driver::kSuccess;
}

}  // namespace plait::cuda::emulation
