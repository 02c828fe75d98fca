// The BLAS library found at run time, as a table of functions.
#pragma once
#include "kernel/kernel.h"

namespace plait::core {

enum { kRowMajor = 101, kNoTrans = 111, kTrans = 112 };  // constants of CBLAS

template <class T>
struct BlasOf {
  void (*gemm)(int order, int trans_a, int trans_b, int m, int n, int k, T alpha, const T *a,
               int lda, const T *b, int ldb, T beta, T *c, int ldc);
};

struct Blas {
  BlasOf<float> s;
  BlasOf<double> d;
  char path[1024];  // empty: none was found, gemm is NULL
  void *library;
};

// The BLAS library, opened at the first call and set to one thread, as it runs inside our executor.
// It is the library that PLAIT_BLAS_LIBRARY names, and no other; or else the first that exists of:
// the argument of plait_core_use_blas, the scipy_openblas32 package beside this library's package,
// the system's BLAS.
const Blas &blas();
// Fails if PLAIT_BLAS_LIBRARY names a library that cannot be used.
plait_status check_blas(const plait_call *c);
// Whether PLAIT_BLAS_LIBRARY names a library, which products then use.
bool names_blas();
// A function of that library by its Fortran or C name, whatever prefix it has there; or NULL.
void *blas_symbol(const char *name);

template <class T>
inline const BlasOf<T> &blas_of();
template <>
inline const BlasOf<float> &blas_of<float>() {
  return blas().s;
}
template <>
inline const BlasOf<double> &blas_of<double>() {
  return blas().d;
}

}  // namespace plait::core
