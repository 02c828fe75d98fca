#include "linalg/lapack.h"

#include <dlfcn.h>
#include <pthread.h>

#include <cstdio>

#include "linalg/blas.h"

namespace plait::core::linalg {
namespace {

Lapack tables[kLapackKinds];
pthread_once_t once = PTHREAD_ONCE_INIT;

// A function of the BLAS library, or of the other library: some BLAS libraries do not contain
// LAPACK.
void *find(char letter, const char *name, void *other) {
  const bool complex = letter == 'c' || letter == 'z';
  if (complex && strcmp(name, "orgqr") == 0) name = "ungqr";
  if (complex && strcmp(name, "syevd") == 0) name = "heevd";
  if (!complex && strncmp(name, "hetr", 4) == 0) name = strcmp(name, "hetrf") ? "sytrs" : "sytrf";
  char full[32];
  snprintf(full, sizeof full, "%c%s_", letter, name);
  void *result = blas_symbol(full);
  return result || !other ? result : dlsym(other, full);
}

void load() {
  if (!blas().path[0]) return;
  void *other = blas_symbol("dgetrf_") ? nullptr : dlopen("liblapack.so.3", RTLD_NOW | RTLD_LOCAL);
  const char letters[] = {'s', 'd', 'c', 'z'};
  for (int i = 0; i < kLapackKinds; i++) {
    Lapack &t = tables[i];
    t.complete = true;
#define PLAIT_FIND(name)                   \
  t.name = find(letters[i], #name, other); \
  t.complete = t.complete && t.name;
    PLAIT_LAPACK_FUNCTIONS(PLAIT_FIND)
#undef PLAIT_FIND
  }
  bool all = true;
  for (const Lapack &t : tables) all = all && t.complete;
  for (Lapack &t : tables) t.complete = all;
}

}  // namespace

const Lapack &lapack_of(int which) {
  pthread_once(&once, load);
  return tables[which];
}

plait_status no_lapack(const plait_call *c) {
  PLAIT_TRY(check_blas(c));
  return PLAIT_FAIL(
      c, PLAIT_NOT_IMPLEMENTED,
      "a LAPACK library is required and none was found; install one with `pip install "
      "scipy-openblas32`, or name one in PLAIT_BLAS_LIBRARY");
}

}  // namespace plait::core::linalg
