#include "steps.hpp"
#include "walk.hpp"

namespace plait::optim {
namespace {

enum {
  params,
  grads,
  momentum_buffers,
  steps,
  lr,
  momentum,
  dampening,
  weight_decay,
  nesterov,
  maximize
};
constexpr uint32_t n_lists = momentum_buffers + 1;

struct SgdUpdate final : Update {
  SgdUpdate(const Lists &l, const plait_value *in) : Update(l), numbers(in[steps]) {
    written = 1u << params | 1u << momentum_buffers;
    scalars.sign = in[maximize].u.i ? -1 : 1;
    scalars.l2 = in[weight_decay].u.f;
    scalars.lr = in[lr].u.f;
    scalars.momentum = in[momentum].u.f;
    scalars.damped = 1 - in[dampening].u.f;
    scalars.momentum_on = lists.has(momentum_buffers);
    scalars.nesterov = int32_t(in[nesterov].u.i);
  }
  void apply(uint32_t i, void *const *data, int64_t n) const override {
    SgdScalars s = scalars;
    s.first = numbers.u.is[numbers.n == 1 ? 0 : i] == 1;
    (lists.at(0, i)->dl.dtype.bits == 64 ? loops().sgd_f64 : loops().sgd_f32)(s, data, n);
  }
  SgdScalars scalars{};
  const plait_value &numbers;
};

plait_status shape(plait_call *call) {
  return border(call->thread, "sgd_step", [&]() -> plait_status {
    const plait_status status = check_lists(call, Lists(call, n_lists), 1u << momentum_buffers);
    return status == PLAIT_OK ? check_steps(call, call->in[steps], call->in[params].n) : status;
  });
}

plait_status kernel(plait_call *call) {
  return border(call->thread, "sgd_step", [&]() -> plait_status {
    const Lists lists(call, n_lists);
    run(call, SgdUpdate(lists, call->in));
    return PLAIT_OK;
  });
}

}  // namespace

const Step sgd = {
    {PLAIT_HEADER(plait_op_def),
     "sgd_step(Tensor[]! params, Tensor[] grads, Tensor[]! momentum_buffers, int[] steps, *, float "
     "lr=0.001, "
     "float momentum=0, float dampening=0, float weight_decay=0, bool nesterov=False, bool "
     "maximize=False) -> ()",
     "One step of gradient descent over all parameters, in place; with momentum if "
     "`momentum_buffers` is non-empty.\n"
     "\n"
     "With gradient g and step number t (from 1; `steps` holds one for each parameter or one for "
     "all):\n"
     "g += weight_decay * p; b = g if t is 1, else momentum * b + (1 - dampening) * g;\n"
     "g = g + momentum * b with `nesterov`, else b; p -= lr * g.\n"
     "float32 and float64, any strides. Nothing is written if anything is wrong with an argument.\n"
     "Sutskever et al. 2013, in the form that PyTorch uses.",
     0, 0, shape, nullptr, nullptr, nullptr, nullptr},
    kernel};

}  // namespace plait::optim
