#include "adam.hpp"

namespace plait::optim {
namespace {

enum {
  params,
  grads,
  exp_avgs,
  exp_avg_sqs,
  steps,
  lr,
  beta1,
  beta2,
  eps,
  weight_decay,
  decoupled,
  maximize
};

struct RAdamSpec {
  using Rule = optim::RAdam;
  enum : uint32_t { n_lists = 4, optional = 0, counted = 1, own = 0 };
  static plait_status check(const plait_call *call) {
    return check_fractions(call, {beta1, beta2});
  }
  static Rule rule(const plait_value *in, uint32_t, int64_t t) {
    Rule r = rule_with_averages<Rule>(in, lr, decoupled, maximize);
    const double power = whole_power(r.beta2, t), most = 2 / r.weight2 - 1;
    const double length = most - 2 * double(t) * power / (1 - power);
    r.step = in[lr].u.f / bias_correction(in[beta1].u.f, t);
    if (length > 5) {
      const double rectification =
          (length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length);
      r.step *= std::sqrt(rectification * (1 - power));
      r.flags |= Rule::rectified;
    }
    return r;
  }
};

}  // namespace

const Step radam = elementwise<RAdamSpec>(
    "radam_step(Tensor[]! params, Tensor[] grads, Tensor[]! exp_avgs, Tensor[]! exp_avg_sqs, "
    "int[] steps, *, float lr=0.001, float beta1=0.9, float beta2=0.999, float eps=1e-08, "
    "float weight_decay=0, bool decoupled=False, "
    "bool maximize=False, Tensor|Scalar grad_scale=1) -> ()",
    "One step of RAdam, Adam with a rectified variance, over all parameters, in place.\n"
    "\n" PLAIT_DOC_GRADIENT
    "g += weight_decay * p, or with `decoupled` p *= 1 - lr * weight_decay;\n"
    "m += (1 - beta1) * (g - m); v = beta2 * v + (1 - beta2) * g^2; c = 1 - beta2^t;\n"
    "n = 2 / (1 - beta2) - 1; l = n - 2 * t * beta2^t / c; where l > 5: r = sqrt((l - 4) * (l - 2) "
    "* n / ((n - 4) * (n - 2) * l)) and\n"
    "p -= lr / (1 - beta1^t) * r * sqrt(c) * m / (sqrt(v) + eps); else p -= lr / (1 - beta1^t) * "
    "m.\n" PLAIT_DOC_DTYPES "Liu et al. 2020.");

}  // namespace plait::optim
