#include "kernels/blas.h"

#include <dlfcn.h>
#include <pthread.h>
#include <plait/fork.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace plait::core {
namespace {

Blas table;
pthread_once_t once = PTHREAD_ONCE_INIT;
ForkMutex opening;  // a child could not open a library that is half open

// SciPy's builds of OpenBLAS have prefixed names, so that several copies can live in one process.
void *symbol(void *library, const char *name) {
  char prefixed[64];
  snprintf(prefixed, sizeof prefixed, "scipy_%s", name);
  void *p = dlsym(library, prefixed);
  return p ? p : dlsym(library, name);
}

template <class F>
bool find(void *library, const char *name, F *f) {
  *f = reinterpret_cast<F>(symbol(library, name));
  return *f != nullptr;
}

void use_one_thread(void *library) {
  for (const char *name :
       {"openblas_set_num_threads", "MKL_Set_Num_Threads", "bli_thread_set_num_threads"})
    if (auto set = reinterpret_cast<void (*)(int)>(symbol(library, name))) return set(1);
}

bool open(const char *path) {
  if (!path || !*path) return false;
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) return false;
  Blas t{};
  if (!find(library, "cblas_sgemm", &t.s.gemm) || !find(library, "cblas_dgemm", &t.d.gemm) ||
      !find(library, "cblas_sgemv", &t.s.gemv) || !find(library, "cblas_dgemv", &t.d.gemv))
    return false;
  use_one_thread(library);
  snprintf(t.path, sizeof t.path, "%s", path);
  t.library = library;
  table = t;
  return true;
}

// .../plait_core/lib/libplait_cpu_x.so -> .../scipy_openblas32/lib/libscipy_openblas.so
bool open_beside() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<void *>(&open_beside), &info) || !info.dli_fname) return false;
  char path[1024];
  snprintf(path, sizeof path, "%s", info.dli_fname);
  for (int up = 0; up < 3; up++) {
    char *slash = strrchr(path, '/');
    if (!slash) return false;
    *slash = 0;
  }
  const size_t n = strlen(path);
  snprintf(path + n, sizeof path - n, "/scipy_openblas32/lib/libscipy_openblas.so");
  return open(path);
}

void load() {
  const std::lock_guard<ForkMutex> lock(opening);
  const char *chosen = getenv("PLAIT_BLAS_LIBRARY");
  if (chosen && strcmp(chosen, "none") == 0) return;
  if (open(chosen) || open(getenv("PLAIT_CORE_BLAS")) || open_beside()) return;
  for (const char *name :
       {"libopenblas.so.0", "libopenblas.so", "libcblas.so.3", "libcblas.so", "libblis.so.4"})
    if (open(name)) return;
}

}  // namespace

const Blas &blas() {
  pthread_once(&once, load);
  return table;
}

void *blas_symbol(const char *name) {
  void *library = blas().library;
  return library ? symbol(library, name) : nullptr;
}

}  // namespace plait::core

// The path of the BLAS library in use, or "": matrix products then run on plait's own loops.
extern "C" __attribute__((visibility("default"))) const char *plait_core_blas_path(void) {
  return plait::core::blas().path;
}
