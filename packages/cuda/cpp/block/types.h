// Element types of kernels, and the kinds by which the host chooses an instance of a kernel. Both
// compilers and the host read this file.
#pragma once
#if PLAIT_KERNELS
#define PLAIT_OWN_COMPLEX 1  // also where kernels run in the emulation
#endif
#include <plait/half.h>

#include <cstdint>

#include "kernel/kernel.h"
#include "pointwise/math.h"

namespace plait::cuda {

using core::Kind;
using Complex64 = core::Complex64;
using Complex128 = core::Complex128;

// float16 and bfloat16: kernels read and write them, and compute in float32.
struct Half {
  uint16_t bits;
};
struct BFloat {
  uint16_t bits;
};
// Elements that are only moved: one instance for each size serves all dtypes.
struct alignas(16) Bytes16 {
  uint64_t word[2];
};

PLAIT_HD float widen(Half x) {
#if defined(__CUDA_ARCH__)
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
#else
  return plait_float16_to_float(x.bits);
#endif
}
PLAIT_HD float widen(BFloat x) { return scalar::math::from_bits(uint32_t(x.bits) << 16); }

template <class T>
struct Narrow {  // from the type of the computation to the element
  static PLAIT_HD T of(T x) { return x; }
};
template <>
struct Narrow<Half> {
  static PLAIT_HD Half of(float x) {
#if defined(__CUDA_ARCH__)
    uint16_t bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return Half{x != x ? uint16_t(0x7e00) : bits};
#else
    return Half{plait_float16_of_float(x)};
#endif
  }
};
template <>
struct Narrow<BFloat> {
  static PLAIT_HD BFloat of(float x) {
    const uint32_t u = scalar::math::bits(x);
    const uint32_t rounded = (u + 0x7fff + ((u >> 16) & 1)) >> 16;
    return BFloat{uint16_t(x != x ? (u >> 16) | 0x40 : rounded)};
  }
};
template <class T>
PLAIT_HD T widen(T x) {
  return x;
}

// The type in which elements of T are computed, and the one in which many are added.
template <class T>
struct ComputeOf {
  using type = T;
};
template <>
struct ComputeOf<Half> {
  using type = float;
};
template <>
struct ComputeOf<BFloat> {
  using type = float;
};
template <class T>
using Compute = typename ComputeOf<T>::type;

template <class T>
PLAIT_HD T narrow(Compute<T> x) {
  return Narrow<T>::of(x);
}

}  // namespace plait::cuda

// Lists of instances: each entry is the suffix of the kernel's name and the element type. The host
// makes the suffix from the kind of a dtype (host/launch.h), or from the size of an element.
#define PLAIT_EACH_FLOATING(X, ...)        \
  X(f32, float, __VA_ARGS__)               \
  X(f64, double, __VA_ARGS__)              \
  X(f16, ::plait::cuda::Half, __VA_ARGS__) \
  X(bf16, ::plait::cuda::BFloat, __VA_ARGS__)
#define PLAIT_EACH_COMPLEX(X, ...)              \
  X(c64, ::plait::cuda::Complex64, __VA_ARGS__) \
  X(c128, ::plait::cuda::Complex128, __VA_ARGS__)
#define PLAIT_EACH_INTEGERS(X, ...) \
  X(u8, uint8_t, __VA_ARGS__)       \
  X(i8, int8_t, __VA_ARGS__)        \
  X(u16, uint16_t, __VA_ARGS__)     \
  X(i16, int16_t, __VA_ARGS__)      \
  X(u32, uint32_t, __VA_ARGS__)     \
  X(i32, int32_t, __VA_ARGS__)      \
  X(u64, uint64_t, __VA_ARGS__)     \
  X(i64, int64_t, __VA_ARGS__)
#define PLAIT_EACH_INTEGRAL(X, ...)   \
  PLAIT_EACH_INTEGERS(X, __VA_ARGS__) \
  PLAIT_EACH_BOOLEAN(X, __VA_ARGS__)
#define PLAIT_EACH_ARITHMETIC(X, ...) \
  PLAIT_EACH_NUMERIC(X, __VA_ARGS__)  \
  PLAIT_EACH_COMPLEX(X, __VA_ARGS__)
#define PLAIT_EACH_BOOLEAN(X, ...) X(bool, bool, __VA_ARGS__)
#define PLAIT_EACH_WIDE(X, ...) /* float32 and float64 */ \
  X(f32, float, __VA_ARGS__)                              \
  X(f64, double, __VA_ARGS__)
#define PLAIT_EACH_INEXACT(X, ...)    \
  PLAIT_EACH_FLOATING(X, __VA_ARGS__) \
  PLAIT_EACH_COMPLEX(X, __VA_ARGS__)
#define PLAIT_EACH_NUMERIC(X, ...)    \
  PLAIT_EACH_FLOATING(X, __VA_ARGS__) \
  PLAIT_EACH_INTEGERS(X, __VA_ARGS__)
#define PLAIT_EACH_ALL(X, ...)       \
  PLAIT_EACH_NUMERIC(X, __VA_ARGS__) \
  PLAIT_EACH_BOOLEAN(X, __VA_ARGS__)
#define PLAIT_EACH_ANY(X, ...)   \
  PLAIT_EACH_ALL(X, __VA_ARGS__) \
  PLAIT_EACH_COMPLEX(X, __VA_ARGS__)
#define PLAIT_EACH_SIZES(X, ...) /* bytes of an element */ \
  X(b1, uint8_t, __VA_ARGS__)                              \
  X(b2, uint16_t, __VA_ARGS__)                             \
  X(b4, uint32_t, __VA_ARGS__)                             \
  X(b8, uint64_t, __VA_ARGS__)                             \
  X(b16, ::plait::cuda::Bytes16, __VA_ARGS__)
