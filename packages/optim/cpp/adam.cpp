#include "adam.hpp"

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
  counts,
  maximize
};

struct AdamSpec {
  template <class N>
  using RuleOf = AdamOf<N>;
  using Rule = RuleOf<double>;
  enum : uint32_t { n_lists = 5, optional = 1u << max_exp_avg_sqs, counted = 1, own = 0 };
  static constexpr int on_device = counts;
  static plait_status check(const plait_call *call) {
    return check_fractions(call, {beta1, beta2});
  }
  template <class N, class T>
  static RuleOf<N> rule_of(const plait_value *in, const T &t) {
    auto r = rule_with_averages<RuleOf<N>>(in, lr, decoupled, maximize);
    r.step = N(in[lr].u.f) / bias_correction(in[beta1].u.f, t);
    r.inverse_root = N(1) / root(bias_correction(r.beta2, t));
    if (in[max_exp_avg_sqs].n) r.flags |= Rule::amsgrad;
    return r;
  }
  static Rule rule(const plait_value *in, uint32_t, int64_t t) { return rule_of<double>(in, t); }
};

}  // namespace

const Step adam = elementwise<AdamSpec>(
    "adam_step(Tensor[]! params, Tensor[] grads, Tensor[]! exp_avgs, Tensor[]! exp_avg_sqs, "
    "Tensor[]! max_exp_avg_sqs, int[] steps, *, float lr=0.001, float beta1=0.9, "
    "float beta2=0.999, float eps=1e-08, float weight_decay=0, bool decoupled=False, "
    "Tensor? counts=None, bool maximize=False, Tensor|Scalar grad_scale=1) -> ()",
    "One step of Adam over all parameters, in place; AdamW with `decoupled`, AMSGrad with "
    "`max_exp_avg_sqs` non-empty.\n"
    "\n" PLAIT_DOC_GRADIENT
    "g += weight_decay * p, or with `decoupled` p *= 1 - lr * weight_decay;\n"
    "m += (1 - beta1) * (g - m); v = beta2 * v + (1 - beta2) * g^2; w = v, or max(w, v) with "
    "AMSGrad;\n"
    "p -= lr / (1 - beta1^t) * m / (sqrt(w / (1 - beta2^t)) + "
    "eps).\n" PLAIT_DOC_COUNTS PLAIT_DOC_DTYPES
    "Kingma and Ba 2015, Loshchilov and Hutter 2019, Reddi et al. 2018.");

}  // namespace plait::optim
