// Complex numbers as an element type: arithmetic by the textbook, quotients scaled after Smith
// (1962) so that intermediate results do not overflow, elementary functions by the C library, which
// follows Annex G. `pointwise/math.h` includes this file at its end.
#pragma once

namespace plait::scalar::math {

template <class T>
struct Complex {
  T re, im;
  Complex() = default;
  PLAIT_HD Complex(T r, T i = T(0)) : re(r), im(i) {}
  template <class S>
  PLAIT_HD explicit Complex(Complex<S> z) : re(T(z.re)), im(T(z.im)) {}
};

template <class T>
constexpr bool is_complex = false;
template <class T>
constexpr bool is_complex<Complex<T>> = true;

template <class T>
struct RealOf {  // the type of a complex number's parts; for a real type the type itself
  using type = T;
};
template <class T>
struct RealOf<Complex<T>> {
  using type = T;
};

template <class T>
PLAIT_HD Complex<T> operator+(Complex<T> a, Complex<T> b) {
  return {a.re + b.re, a.im + b.im};
}
template <class T>
PLAIT_HD Complex<T> operator-(Complex<T> a, Complex<T> b) {
  return {a.re - b.re, a.im - b.im};
}
template <class T>
PLAIT_HD Complex<T> operator-(Complex<T> a) {
  return {-a.re, -a.im};
}
// Products are fused here explicitly: GCC makes one instruction of a difference and a sum of
// products even where it must not fuse them.
template <class T>
PLAIT_HD Complex<T> operator*(Complex<T> a, Complex<T> b) {
  return {fused(a.re, b.re, -(a.im * b.im)), fused(a.re, b.im, a.im * b.re)};
}
template <class T>
PLAIT_HD Complex<T> operator/(Complex<T> a, Complex<T> b) {
  if (abs(b.re) >= abs(b.im)) {
    if (b.re == T(0) && b.im == T(0)) return {a.re / abs(b.re), a.im / abs(b.re)};
    const T ratio = b.im / b.re, below = fused(b.im, ratio, b.re);
    return {fused(a.im, ratio, a.re) / below, fused(-a.re, ratio, a.im) / below};
  }
  const T ratio = b.re / b.im, below = fused(b.re, ratio, b.im);
  return {fused(a.re, ratio, a.im) / below, fused(a.im, ratio, -a.re) / below};
}
template <class T>
PLAIT_HD Complex<T> &operator+=(Complex<T> &a, Complex<T> b) {
  return a = a + b;
}
template <class T>
PLAIT_HD bool operator==(Complex<T> a, Complex<T> b) {
  return (a.re == b.re) & (a.im == b.im);
}
template <class T>
PLAIT_HD bool operator!=(Complex<T> a, Complex<T> b) {
  return !(a == b);
}

template <class T>
PLAIT_HD T abs(Complex<T> z) {
  return hypot(z.re, z.im);
}
template <class T>
PLAIT_HD T angle(Complex<T> z) {
  return atan2(z.im, z.re);
}
template <class T>
PLAIT_HD Complex<T> conj(Complex<T> z) {
  return {z.re, -z.im};
}

}  // namespace plait::scalar::math

// Elementary functions: those of the C library, but for kernels of GPUs, also where those run in
// an emulation.
#if defined(__CUDACC__) || defined(PLAIT_OWN_COMPLEX)
#include "pointwise/complex_functions.h"
namespace plait::scalar::math {
#else
namespace plait::scalar::math {

__extension__ typedef float _Complex CFloat;
__extension__ typedef double _Complex CDouble;
inline CFloat native(Complex<float> z) {
  CFloat c;
  __real__ c = z.re;
  __imag__ c = z.im;
  return c;
}
inline CDouble native(Complex<double> z) {
  CDouble c;
  __real__ c = z.re;
  __imag__ c = z.im;
  return c;
}
inline Complex<float> number(CFloat c) { return {__real__ c, __imag__ c}; }
inline Complex<double> number(CDouble c) { return {__real__ c, __imag__ c}; }

#define PLAIT_COMPLEX_FUNCTION(name)                                                               \
  inline Complex<float> name(Complex<float> z) { return number(__builtin_c##name##f(native(z))); } \
  inline Complex<double> name(Complex<double> z) { return number(__builtin_c##name(native(z))); }
PLAIT_COMPLEX_FUNCTION(exp)
PLAIT_COMPLEX_FUNCTION(log)
PLAIT_COMPLEX_FUNCTION(sqrt)
PLAIT_COMPLEX_FUNCTION(asin)
PLAIT_COMPLEX_FUNCTION(acos)
PLAIT_COMPLEX_FUNCTION(atan)
PLAIT_COMPLEX_FUNCTION(sinh)
PLAIT_COMPLEX_FUNCTION(cosh)
PLAIT_COMPLEX_FUNCTION(tanh)
PLAIT_COMPLEX_FUNCTION(asinh)
PLAIT_COMPLEX_FUNCTION(acosh)
PLAIT_COMPLEX_FUNCTION(atanh)
#undef PLAIT_COMPLEX_FUNCTION

#define PLAIT_COMPLEX_TRIGONOMETRIC(name)           \
  template <bool quick = false>                     \
  inline Complex<float> name(Complex<float> z) {    \
    return number(__builtin_c##name##f(native(z))); \
  }                                                 \
  template <bool quick = false>                     \
  inline Complex<double> name(Complex<double> z) {  \
    return number(__builtin_c##name(native(z)));    \
  }
PLAIT_COMPLEX_TRIGONOMETRIC(sin)
PLAIT_COMPLEX_TRIGONOMETRIC(cos)
PLAIT_COMPLEX_TRIGONOMETRIC(tan)
#undef PLAIT_COMPLEX_TRIGONOMETRIC
#endif

// Functions made of those.

template <class T>
PLAIT_HD_CALL Complex<T> log2(Complex<T> z) {
  const Complex<double> r = log(Complex<double>(z));
  return Complex<T>(Complex<double>(r.re * 1.4426950408889634, r.im * 1.4426950408889634));
}
template <class T>
PLAIT_HD_CALL Complex<T> log10(Complex<T> z) {
  const Complex<double> r = log(Complex<double>(z));
  return Complex<T>(Complex<double>(r.re * 0.43429448190325183, r.im * 0.43429448190325183));
}
// |1 + z|^2 = 1 + x (2 + x) + y^2, which keeps the bits that 1 + x loses
template <class T>
PLAIT_HD_CALL Complex<T> log1p(Complex<T> z) {
  const double x = double(z.re), y = double(z.im);
  const bool small = abs(x) < 0.5 && abs(y) < 0.5;
  const double re = small ? 0.5 * log1p(x * (2.0 + x) + y * y) : log(hypot(1.0 + x, y));
  return {T(re), T(atan2(y, 1.0 + x))};
}
template <class T>
PLAIT_HD_CALL Complex<T> expm1(Complex<T> z) {
  const double x = double(z.re), y = double(z.im), s = sin(0.5 * y);
  if (y == 0.0) return {T(expm1(x)) + T(0), z.im};  // -0 becomes 0
  if (y - y != 0.0 && x == x && x - x != 0.0)  // an infinite or zero result has no angle
    return x < 0.0 ? Complex<T>(T(-1), T(0)) : Complex<T>(T(x), T(y - y));
  return {T(expm1(x) * cos(y) - 2.0 * s * s), T(exp(x) * sin(y))};
}

// Small whole exponents by multiplication, as NumPy does: they are exact where the parts are.
template <class T>
PLAIT_HD_CALL Complex<T> power(Complex<T> a, int n) {
  Complex<T> r(T(1));
  for (unsigned left = unsigned(n < 0 ? -n : n); left; left >>= 1) {
    if (left & 1) r = r * a;
    if (left > 1) a = a * a;
  }
  return n < 0 ? Complex<T>(T(1)) / r : r;
}
template <class T>
PLAIT_HD_CALL Complex<T> pow(Complex<T> a, Complex<T> b) {
  if (b.im == T(0) && abs(b.re) <= T(64) && trunc(b.re) == b.re) return power(a, int(b.re));
  if (a == Complex<T>(T(0))) {
    if (b.re > T(0)) return T(0);
    return {T(kNan), T(kNan)};
  }
  return Complex<T>(exp(Complex<double>(b) * log(Complex<double>(a))));
}

}  // namespace plait::scalar::math
