// What the decompositions of the steps share: operands as arrays, and the factor of gradients.
#ifndef PLAIT_OPTIM_DECOMPOSITION_HPP
#define PLAIT_OPTIM_DECOMPOSITION_HPP
#include "arrays.hpp"
#include "lists.hpp"

namespace plait::optim {

// `grad_scale`, a real number or a real floating 0-d tensor.
plait_status check_scale(const plait_call *call, const plait_value &grad_scale);

// The number that it is, for kernels: a tensor is one of the CPU there.
double scale_of(const plait_value &grad_scale);

// The operands of a step, one parameter after the other. Halves are arrays of float32, which are
// rounded when they are written back, as in the kernels.
class Operands {
 public:
  Operands(const plait_call *call, const Lists &lists);
  void read(uint32_t i, double factor);
  void write(uint32_t i);

  // The number of parameter i in `counts`, and a number as an operand of its arithmetic.
  Array count(plait_tensor *counts, uint32_t i) const;
  Array as_operand(uint32_t i, Array number) const;

  Array list[max_operands];  // names the gradient, too, which so is never written
  Array scale;                     // `factor`, times `grad_scale` if that is a tensor
  plait_value in[PLAIT_MAX_ARGS];  // the call's, with 1 in place of such a `grad_scale`

 private:
  plait_thread *thread_;
  const Lists &lists_;
  Tensor scale_;      // such a `grad_scale`
  Tensor scales_[2];  // the same as float32 and as float64
};

}  // namespace plait::optim
#endif  // PLAIT_OPTIM_DECOMPOSITION_HPP
