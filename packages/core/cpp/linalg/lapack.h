// LAPACK from the BLAS library that was found at run time: a table of functions for each element
// type. Matrices are column-major, sizes are int, every argument is a pointer.
#pragma once
#include "kernel/kernel.h"

namespace plait::core::linalg {

__extension__ typedef _Complex float c64;
__extension__ typedef _Complex double c128;

template <class T>
struct RealPart {
  using type = T;
};
template <>
struct RealPart<c64> {
  using type = float;
};
template <>
struct RealPart<c128> {
  using type = double;
};
template <class T>
using Real = typename RealPart<T>::type;
template <class T>
constexpr bool is_complex = false;
template <>
inline constexpr bool is_complex<c64> = true;
template <>
inline constexpr bool is_complex<c128> = true;

template <class T>
inline Real<T> real_part(T x) {
  if constexpr (is_complex<T>)
    return __real__ x;
  else
    return x;
}
template <class T>
inline T conjugate(T x) {
  if constexpr (is_complex<T>)
    return ~x;
  else
    return x;
}
inline double magnitude(float x) { return __builtin_fabs(double(x)); }
inline double magnitude(double x) { return __builtin_fabs(x); }
inline double magnitude(c64 x) { return __builtin_hypot(double(__real__ x), double(__imag__ x)); }
inline double magnitude(c128 x) { return __builtin_hypot(__real__ x, __imag__ x); }

// `orgqr` and `syevd` stand for the complex `ungqr` and `heevd` as well, `hetrf` and `hetrs` for
// the real `sytrf` and `sytrs`.
#define PLAIT_LAPACK_FUNCTIONS(f)                                                                 \
  f(gemm) f(trsm) f(gesv) f(getrf) f(getri) f(getrs) f(potrf) f(potri) f(potrs) f(geqrf) f(orgqr) \
      f(syevd) f(geev) f(gesdd) f(gelsd) f(gelsy) f(sytrf) f(sytrs) f(hetrf) f(hetrs)

struct Lapack {
#define PLAIT_MEMBER(name) void *name;
  PLAIT_LAPACK_FUNCTIONS(PLAIT_MEMBER)
#undef PLAIT_MEMBER
  bool complete;
};
enum { kLapackKinds = 4 };
const Lapack &lapack_of(int which);  // 0 float, 1 double, 2 c64, 3 c128
template <class T>
inline const Lapack &lapack() {
  return lapack_of((sizeof(Real<T>) == 8) + 2 * is_complex<T>);
}

// Calls a Fortran subroutine. The lengths of its character arguments follow the others, each a
// size_t of 1.
template <class... A>
inline void fortran(void *function, A... arguments) {
  reinterpret_cast<void (*)(A...)>(function)(arguments...);
}
constexpr size_t kOne = 1;

plait_status no_lapack(const plait_call *c);

#define PLAIT_LINALG(k, ...)             \
  switch (k) {                           \
    PLAIT_CASE(F32, float, __VA_ARGS__)  \
    PLAIT_CASE(F64, double, __VA_ARGS__) \
    PLAIT_CASE(C64, c64, __VA_ARGS__)    \
    PLAIT_CASE(C128, c128, __VA_ARGS__)  \
    default: return PLAIT_DECLINE;       \
  }
// Registers `template <class T> plait_status function(plait_call *)` for the four types; the dtype
// of the first argument selects the instance.
#define PLAIT_LINALG_KERNEL(op, function)                          \
  plait_status function##_any(plait_call *c) {                     \
    if (!lapack<float>().complete) return no_lapack(c);            \
    PLAIT_LINALG(kind(tensor(c, 0)->dtype), return function<T>(c)) \
    return PLAIT_OK;                                               \
  }                                                                \
  PLAIT_KERNEL(op, function##_any)

}  // namespace plait::core::linalg
