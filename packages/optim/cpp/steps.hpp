// The operators of this component: schemas in the .cpp files, one file an operator.
#ifndef PLAIT_OPTIM_STEPS_HPP
#define PLAIT_OPTIM_STEPS_HPP
#include <plait/abi.h>

#include "loops.hpp"

namespace plait::optim {

struct Step {
  plait_op_def def;
  plait_kernel kernel;  // for the CPU
};
extern const Step sgd, adam, nadam, radam, adamax, adagrad, adadelta, rmsprop, rprop, asgd, average,
    count_steps, grad_norm, state_like, state_load;

// the loops in force: chosen when the component is loaded
const Loops &loops();

}  // namespace plait::optim
#endif  // PLAIT_OPTIM_STEPS_HPP
