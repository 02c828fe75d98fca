#include <vector>

#include <plait/plait.hpp>

#include "decomposition.hpp"
#include "operations.hpp"
#include "steps.hpp"

namespace plait::optim {
namespace {

plait_status check_numbers(const plait_call *call) {
  const plait_value &steps = call->in[0];
  const auto fail = call->thread->runtime->fail;
  if (steps.n == 0) return fail(call, PLAIT_VALUE_ERROR, "`steps` must not be empty");
  for (uint32_t i = 0; i < steps.n; i++) {
    const plait_tensor *t = steps.u.ts[i];
    if (t->dl.ndim != 0 || !same(t->dl.dtype, dtype::float32))
      return fail(call, PLAIT_VALUE_ERROR,
                  "`steps[%u]` must be a 0-d tensor of float32; got %s of shape %s", i,
                  name(t->dl.dtype), shape_text(t).c_str());
  }
  return PLAIT_OK;
}

plait_status shape(plait_call *call) {
  return border(call->thread, call->op->name, [&]() -> plait_status {
    if (const plait_status status = check_numbers(call); status != PLAIT_OK) return status;
    const int64_t n = call->in[0].n;
    return call->thread->runtime->result(call, 0, dtype::float64, 1, &n);
  });
}

plait_status kernel(plait_call *call) {
  auto *out = static_cast<double *>(call->out[0].u.t->dl.data);
  for (uint32_t i = 0; i < call->in[0].n; i++) {
    auto *step = static_cast<float *>(call->in[0].u.ts[i]->dl.data);
    *step += float(call->in[1].u.i);
    out[i] = double(*step);
  }
  return PLAIT_OK;
}

plait_status decomposed(plait_call *call) {
  if (const plait_status status = check_numbers(call); status != PLAIT_OK) return status;
  plait_thread *thread = call->thread;
  return border(thread, call->op->name, [&]() -> plait_status {
    static const Operator add(thread->runtime, "add"), stack(thread->runtime, "stack"),
        cast(thread->runtime, "cast");
    const plait_value &steps = call->in[0];
    for (uint32_t i = 0; i < steps.n; i++)
      add.in_place(thread, Tensor::share(steps.u.ts[i]), call->in[1]);
    const Tensor all = stack(thread, steps);
    call->out[0] = value(cast(thread, all, dtype::float64).release());
    return PLAIT_OK;
  });
}

void cost(const plait_call *call, plait_cost *out) {
  out->operations = call->in[0].n;
  out->written = bytes_of(call->in[0]) + 8 * uint64_t(call->in[0].n);
}

}  // namespace

const Step count_steps = {
    {PLAIT_HEADER(plait_op_def), "count_steps(Tensor[]! steps, int by=1) -> Tensor",
     "Adds `by` to the step number of each parameter, in place, and returns the new numbers.\n"
     "\n"
     "`steps` are 0-d tensors of float32, the result is float64 of their number. Where a graph of "
     "a "
     "device repeats a step, numbers must be counted there.",
     0, shape, nullptr, nullptr, nullptr, decomposed, nullptr, cost, nullptr, nullptr},
    kernel};

}  // namespace plait::optim
