// Elements that a loop cannot use directly go through blocks: strided ones are gathered, float16
// and bfloat16 are widened to float32, and results are written back, rounded to nearest. So rules
// are for float and double only.
#ifndef PLAIT_OPTIM_BLOCKS_HPP
#define PLAIT_OPTIM_BLOCKS_HPP
#include <plait/plait.hpp>

namespace plait::optim {

constexpr int64_t block_elements = 512;
using Block = double[block_elements];  // or as many floats

// The dtypes of parameters, gradients and state.
bool is_real_floating(DType d);
inline constexpr char floating_names[] = "float16, bfloat16, float32 or float64";

inline bool is_half(DType d) { return d.bits == 16; }
// Blocks of this dtype hold doubles, all others floats.
inline bool is_wide(DType d) { return d.bits == 64; }

// n elements from `start` on, at most a block: in memory order if t is dense and `flat` says so,
// else in C order.
void gather(const plait_tensor *t, bool flat, int64_t start, int64_t n, void *block);
void scatter(const plait_tensor *t, bool flat, int64_t start, int64_t n, const void *block);

}  // namespace plait::optim
#endif  // PLAIT_OPTIM_BLOCKS_HPP
