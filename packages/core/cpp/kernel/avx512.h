// Loops that are compiled for AVX-512 too, whose bits do not depend on the registers' width.
#pragma once
#include "kernel/kernel.h"

namespace plait::core {

// Whether the processor has AVX-512 (its foundation), unless the variable PLAIT_CPU is avx2. False
// in kernels of other levels than AVX2.
bool has_avx512();

// run_loop<Loop>(arguments) calls Loop::run(arguments), an inlined function, in the widest
// registers that the processor has.
template <class Loop, class... A>
PLAIT_NOINLINE void run_short(A... arguments) {
  Loop::run(arguments...);
}
#if defined(__AVX2__) && defined(__x86_64__)
template <class Loop, class... A>
__attribute__((noinline, target("avx512f"))) void run_64(A... arguments) {
  Loop::run(arguments...);
}
#endif
template <class Loop, class... A>
void run_loop(A... arguments) {
#if defined(__AVX2__) && defined(__x86_64__)
  if (has_avx512()) return run_64<Loop>(arguments...);
#endif
  run_short<Loop>(arguments...);
}

}  // namespace plait::core
