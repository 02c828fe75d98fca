// libplait_optim: the optimizers' fused steps as operators. It does not use Python, so C++ programs
// can load it too.
#include <cstdlib>

#include <plait/plait.hpp>

#include "steps.hpp"

namespace plait::optim {
namespace {

const Loops *chosen = &base_loops;

plait_status init(const plait_runtime *runtime, const plait_plugin *self) {
  plait_thread *thread = runtime->thread();
  chosen = &best_loops(std::getenv("PLAIT_CPU"));
  for (const Step *step :
       {&sgd, &adam, &nadam, &radam, &adamax, &adagrad, &adadelta, &rmsprop, &rprop, &asgd,
        &average, &count_steps, &grad_norm, &state_like, &state_load}) {
    const plait_op *op = nullptr;
    plait_status status = runtime->define(thread, &step->def, &op);
    if (status == PLAIT_OK)
      status = runtime->implement(thread, op, kDLCPU, step->kernel, nullptr, self, nullptr);
    if (status != PLAIT_OK) return status;
  }
  return PLAIT_OK;
}

}  // namespace

const Loops &loops() { return *chosen; }

}  // namespace plait::optim

extern "C" __attribute__((visibility("default")))
const plait_plugin plait_plugin_v1 = {PLAIT_HEADER(plait_plugin), "plait_optim",      "0.2.0",
                                      PLAIT_PLUGIN_DEFAULT,       plait::optim::init, nullptr};
