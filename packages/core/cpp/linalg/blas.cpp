#include "linalg/blas.h"

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
char packaged[1024];
// why the library of PLAIT_BLAS_LIBRARY cannot be used; empty if it can, or is not set
char refusal[1536];
pthread_once_t once = PTHREAD_ONCE_INIT;
ForkMutex opening;  // so that no fork happens while a library is being opened

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
  if (!*path) return false;
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) return false;
  Blas t{};
  if (!find(library, "cblas_sgemm", &t.s.gemm) || !find(library, "cblas_dgemm", &t.d.gemm))
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

const char *user_library() {  // the path or name in PLAIT_BLAS_LIBRARY, or NULL
  const char *path = getenv("PLAIT_BLAS_LIBRARY");
  return path && *path ? path : nullptr;
}

void load() {
  const std::lock_guard<ForkMutex> lock(opening);
  if (const char *path = user_library()) {
    if (strcmp(path, "none") == 0 || open(path)) return;
    const char *reason = dlerror();
    snprintf(refusal, sizeof refusal,
             "PLAIT_BLAS_LIBRARY: the path of a library with cblas_sgemm and cblas_dgemm, or none, "
             "is required; got '%.500s': %.700s",
             path, reason ? reason : "it lacks these functions");
    return;
  }
  if (open(packaged) || open_beside()) return;
  for (const char *name :
       {"libopenblas.so.0", "libopenblas.so", "libcblas.so.3", "libcblas.so", "libblis.so.4"})
    if (open(name)) return;
}

}  // namespace

const Blas &blas() {
  pthread_once(&once, load);
  return table;
}

plait_status check_blas(const plait_call *c) {
  static const bool is_set = user_library() != nullptr;
  if (!is_set) return PLAIT_OK;
  blas();
  return refusal[0] ? PLAIT_FAIL(c, PLAIT_VALUE_ERROR, "%s", refusal) : PLAIT_OK;
}

bool names_blas() {
  static const bool named = user_library() && strcmp(user_library(), "none") != 0;
  return named;
}

void *blas_symbol(const char *name) {
  void *library = blas().library;
  return library ? symbol(library, name) : nullptr;
}

}  // namespace plait::core

// Must be called before the first product. `path` is the path of the packaged BLAS, or "". Returns
// NULL, or the reason why the library of PLAIT_BLAS_LIBRARY cannot be used.
extern "C" __attribute__((visibility("default"))) const char *plait_core_use_blas(
    const char *path) {
  using namespace plait::core;
  snprintf(packaged, sizeof packaged, "%s", path);
  if (user_library()) blas();
  return refusal[0] ? refusal : nullptr;
}
