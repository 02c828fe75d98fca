// Fourier transforms of one line of complex numbers, which lie one after another in memory.
#pragma once
#include "fft/fft_plan.h"

namespace plait::core::fft {

// Bytes of scratch memory that `transform_line` needs.
template <class T>
uint64_t scratch_bytes(const Plan<T> &plan);

// to = scale * the transform of `from`, or with `inverse` the inverse transform without its
// division by n. `from` and `to` may be the same. The plan is not in the form `Whole`.
template <class T>
void transform_line(const Plan<T> &plan, const T *from, T *to, T *scratch, bool inverse, T scale);

}  // namespace plait::core::fft
