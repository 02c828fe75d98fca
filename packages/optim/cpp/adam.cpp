#include <cmath>
#include <vector>

#include "steps.hpp"
#include "walk.hpp"

namespace plait::optim {
namespace {

enum {
  params,
  grads,
  exp_avgs,
  exp_avg_sqs,
  max_exp_avg_sqs,
  steps,
  lr,
  beta1,
  beta2,
  eps,
  weight_decay,
  decoupled,
  maximize
};
constexpr uint32_t n_lists = max_exp_avg_sqs + 1;

AdamScalars scalars(const plait_value *in, int64_t t) {
  const double b1 = in[beta1].u.f, b2 = in[beta2].u.f, decay = in[weight_decay].u.f,
               rate = in[lr].u.f;
  const bool apart = in[decoupled].u.i;
  AdamScalars s{};
  s.sign = in[maximize].u.i ? -1 : 1;
  s.l2 = apart ? 0 : decay;
  s.keep = apart ? 1 - rate * decay : 1;
  s.weight1 = 1 - b1;
  s.beta2 = b2;
  s.weight2 = 1 - b2;
  s.step = rate / (1 - std::pow(b1, double(t)));
  s.inverse_root = 1 / std::sqrt(1 - std::pow(b2, double(t)));
  s.eps = in[eps].u.f;
  return s;
}

struct AdamUpdate final : Update {
  AdamUpdate(const Lists &l, const plait_value *in) : Update(l) {
    written = 1u << params | 1u << exp_avgs | 1u << exp_avg_sqs | 1u << max_exp_avg_sqs;
    for (uint32_t i = 0; i < in[steps].n; i++) {
      const int64_t t = in[steps].u.is[i];
      all.push_back(i && t == in[steps].u.is[i - 1] ? all.back() : scalars(in, t));
    }
  }
  void apply(uint32_t i, void *const *data, int64_t n) const override {
    const AdamScalars &s = all.size() == 1 ? all[0] : all[i];
    (lists.at(0, i)->dl.dtype.bits == 64 ? loops().adam_f64 : loops().adam_f32)(s, data, n);
  }
  std::vector<AdamScalars> all;  // one for each parameter, or one for all
};

plait_status shape(plait_call *call) {
  return border(call->thread, "adam_step", [&]() -> plait_status {
    const plait_status status = check_lists(call, Lists(call, n_lists), 1u << max_exp_avg_sqs);
    if (status != PLAIT_OK) return status;
    for (int k : {beta1, beta2})
      if (!(call->in[k].u.f >= 0 && call->in[k].u.f < 1))
        return call->thread->runtime->fail(call, PLAIT_VALUE_ERROR,
                                           "`%s` must be in [0, 1); got %g", call->op->args[k].name,
                                           call->in[k].u.f);
    return check_steps(call, call->in[steps], call->in[params].n);
  });
}

plait_status kernel(plait_call *call) {
  return border(call->thread, "adam_step", [&]() -> plait_status {
    const Lists lists(call, n_lists);
    run(call, AdamUpdate(lists, call->in));
    return PLAIT_OK;
  });
}

}  // namespace

const Step adam = {
    {PLAIT_HEADER(plait_op_def),
     "adam_step(Tensor[]! params, Tensor[] grads, Tensor[]! exp_avgs, Tensor[]! exp_avg_sqs, "
     "Tensor[]! max_exp_avg_sqs, int[] steps, *, float lr=0.001, float beta1=0.9, float "
     "beta2=0.999, "
     "float eps=1e-08, float weight_decay=0, bool decoupled=False, bool maximize=False) -> ()",
     "One step of Adam over all parameters, in place; AdamW with `decoupled`, AMSGrad with "
     "`max_exp_avg_sqs` non-empty.\n"
     "\n"
     "With gradient g, step number t (from 1; `steps` holds one for each parameter or one for "
     "all):\n"
     "g += weight_decay * p, or with `decoupled` p *= 1 - lr * weight_decay;\n"
     "m += (1 - beta1) * (g - m); v = beta2 * v + (1 - beta2) * g^2; w = v, or max(w, v) with "
     "AMSGrad;\n"
     "p -= lr / (1 - beta1^t) * m / (sqrt(w / (1 - beta2^t)) + eps).\n"
     "float32 and float64, any strides. Nothing is written if anything is wrong with an argument.\n"
     "Kingma and Ba 2015, Loshchilov and Hutter 2019, Reddi et al. 2018.",
     0, 0, shape, nullptr, nullptr, nullptr, nullptr},
    kernel};

}  // namespace plait::optim
