// The innermost loops of the fused steps: one pass over contiguous memory, one set for each
// instruction set. Nothing here includes the standard library: inline functions compiled for AVX2
// must not be found by a linker.
#ifndef PLAIT_OPTIM_LOOPS_HPP
#define PLAIT_OPTIM_LOOPS_HPP
#include <stdint.h>

namespace plait::optim {

struct AdamScalars {
  double sign;     // -1 when the objective is maximised
  double l2;       // added to the gradient as l2 * p; 0: none
  double keep;     // 1 - lr * weight_decay when decoupled, else 1
  double weight1;  // 1 - beta1
  double beta2, weight2;
  double step;          // lr / (1 - beta1^t)
  double inverse_root;  // 1 / sqrt(1 - beta2^t)
  double eps;
};

struct SgdScalars {
  double sign, l2, lr, momentum;
  double damped;  // 1 - dampening
  int32_t momentum_on, first, nesterov;
  int32_t reserved;
};

// Operands in the order of the schemas: params, grads, then the state; a missing one is NULL.
using AdamLoop = void (*)(const AdamScalars &, void *const *operands, int64_t n);
using SgdLoop = void (*)(const SgdScalars &, void *const *operands, int64_t n);

struct Loops {
  const char *name;
  AdamLoop adam_f32, adam_f64;
  SgdLoop sgd_f32, sgd_f64;
};

extern const Loops base_loops;
// The fastest set this processor runs; `wanted` "base" asks for that one, NULL for the best.
const Loops &best_loops(const char *wanted);

}  // namespace plait::optim
#endif  // PLAIT_OPTIM_LOOPS_HPP
