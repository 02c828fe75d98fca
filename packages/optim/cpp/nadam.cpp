#include "adam.hpp"

namespace plait::optim {
namespace {

enum {
  params,
  grads,
  exp_avgs,
  exp_avg_sqs,
  steps,
  mu_products,
  lr,
  beta1,
  beta2,
  eps,
  weight_decay,
  momentum_decay,
  decoupled,
  maximize
};

struct NAdamSpec {
  using Rule = optim::NAdam;
  enum : uint32_t { n_lists = 4, optional = 0, counted = 1, own = 1 };
  static plait_status check(const plait_call *call) {
    const plait_status status = check_fractions(call, {beta1, beta2});
    return status == PLAIT_OK ? check_per_parameter(call, mu_products) : status;
  }
  static Rule rule(const plait_value *in, uint32_t i, int64_t t) {
    Rule r = rule_with_averages<Rule>(in, lr, decoupled, maximize);
    const double rate = in[lr].u.f, b1 = in[beta1].u.f;
    const double per_step = in[momentum_decay].u.f, product = in[mu_products].u.fs[i];
    constexpr double log = -0x1.4e69ed6d80eb3p-5;  // of 0.96
    const double mu = b1 * (1 - 0.5 * exponential(double(t) * per_step * log));
    const double mu_next = b1 * (1 - 0.5 * exponential(double(t + 1) * per_step * log));
    r.inverse_root = 1 / std::sqrt(bias_correction(r.beta2, t));
    r.by_gradient = rate * (1 - mu) / (1 - product);
    r.by_average = rate * mu_next / (1 - product * mu_next);
    return r;
  }
};

}  // namespace

const Step nadam = elementwise<NAdamSpec>(
    "nadam_step(Tensor[]! params, Tensor[] grads, Tensor[]! exp_avgs, Tensor[]! exp_avg_sqs, "
    "int[] steps, float[] mu_products, *, float lr=0.002, float beta1=0.9, float beta2=0.999, "
    "float eps=1e-08, float weight_decay=0, float momentum_decay=0.004, bool decoupled=False, "
    "bool maximize=False, Tensor|Scalar grad_scale=1) -> ()",
    "One step of NAdam, Adam with Nesterov's momentum, over all parameters, in place.\n"
    "\n" PLAIT_DOC_GRADIENT
    "g += weight_decay * p, or with `decoupled` p *= 1 - lr * weight_decay;\n"
    "m += (1 - beta1) * (g - m); v = beta2 * v + (1 - beta2) * g^2;\n"
    "mu_t = beta1 * (1 - 0.96^(t * momentum_decay) / 2), and M = mu_1 ... mu_t, which is given in "
    "`mu_products`, one for each parameter;\n"
    "p -= lr * ((1 - mu_t) / (1 - M) * g + mu_(t+1) / (1 - M * mu_(t+1)) * m) / (sqrt(v / (1 - "
    "beta2^t)) + eps).\n" PLAIT_DOC_DTYPES "Dozat 2016.");

}  // namespace plait::optim
