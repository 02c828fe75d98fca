// What the decompositions of the steps share: operands as arrays, and the factor of gradients.
#ifndef PLAIT_OPTIM_DECOMPOSITION_HPP
#define PLAIT_OPTIM_DECOMPOSITION_HPP
#include "arrays.hpp"
#include "lists.hpp"

namespace plait::optim {

// `grad_scale`, a real number or a real floating 0-d tensor.
plait_status check_scale(const plait_call *call, const plait_value &grad_scale);

// `grad_scale`, or 1 for a tensor that the host cannot read, by which the decomposition multiplies.
// A kernel of another device that is made of the CPU's sees a tensor of the CPU.
double known_scale(const plait_value &grad_scale);

// The operands of a step, one parameter after the other. Halves are arrays of float32, which are
// rounded when they are written back, as in the kernels.
class Operands {
 public:
  // `grad_scale`: or NULL
  Operands(const plait_call *call, const Lists &lists, const plait_value *grad_scale);
  void read(uint32_t i, double factor);
  void write(uint32_t i);

  Array list[max_operands];  // names the gradient, too, which so is never written
  Array scale;  // `factor`, times `grad_scale` where only the device has it

 private:
  plait_thread *thread_;
  const Lists &lists_;
  Tensor scale_;     // where only the device has it
  Tensor scales_[2];  // the same as float32 and as float64
};

}  // namespace plait::optim
#endif  // PLAIT_OPTIM_DECOMPOSITION_HPP
