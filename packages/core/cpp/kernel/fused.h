// a b + c, rounded once where the processor has the instruction. Compilers fuse products and sums
// of vectors on their own, but not those of every scalar loop: some become vectors of products,
// whose elements are added one by one.
#ifndef PLAIT_CORE_FUSED_H
#define PLAIT_CORE_FUSED_H
#include "kernel/kernel.h"

namespace plait::core {

#if defined(__FMA__) || defined(__aarch64__)
PLAIT_INLINE float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
PLAIT_INLINE double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }
#else
PLAIT_INLINE float fused(float a, float b, float c) { return a * b + c; }
PLAIT_INLINE double fused(double a, double b, double c) { return a * b + c; }
#endif
template <class V>
PLAIT_INLINE V fused(V a, V b, V c) {
  return a * b + c;
}

}  // namespace plait::core
#endif  // PLAIT_CORE_FUSED_H
