// The innermost loops of the fused steps: one pass over contiguous memory, one set for each
// instruction set. It does not include the standard library, so that the linker does not find
// inline functions that are compiled for AVX2.
#ifndef PLAIT_OPTIM_LOOPS_HPP
#define PLAIT_OPTIM_LOOPS_HPP
#include "rules.hpp"

namespace plait::optim {

// Operands in the order of the schemas: params, grads, then the state; a missing one is NULL.
using Loop = void (*)(const Rule &, void *const *operands, int64_t n);

template <class>
struct LoopPair {
  Loop f32, f64;
};

// n elements of a half dtype, as bits, to float32 and back, to nearest and ties to even.
struct HalfRuns {
  void (*widen)(float *, const uint16_t *, int64_t);
  void (*narrow)(uint16_t *, const float *, int64_t);
};

template <class... Rules>
struct LoopSet : LoopPair<Rules>... {
  const char *name;
  double (*squares_f32)(const void *, int64_t);  // the sum of n squares
  double (*squares_f64)(const void *, int64_t);
  HalfRuns float16, bfloat16;
  template <class R>
  Loop of(bool wide) const {
    const LoopPair<R> &pair = *this;
    return wide ? pair.f64 : pair.f32;
  }
};
using Loops =
    LoopSet<Adam, NAdam, RAdam, Adamax, Adagrad, Adadelta, RmsProp, Sgd, Rprop, Asgd, Average>;

extern const Loops base_loops;
// The fastest set for this processor; `required` is "base", or NULL for the best.
const Loops &best_loops(const char *required);

}  // namespace plait::optim
#endif  // PLAIT_OPTIM_LOOPS_HPP
