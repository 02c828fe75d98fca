#include "adam.hpp"

namespace plait::optim {
namespace {

enum {
  params,
  grads,
  exp_avgs,
  exp_infs,
  steps,
  lr,
  beta1,
  beta2,
  eps,
  weight_decay,
  counts,
  maximize
};

struct AdamaxSpec {
  template <class N>
  using RuleOf = AdamaxOf<N>;
  using Rule = RuleOf<double>;
  enum : uint32_t { n_lists = 4, optional = 0, counted = 1, own = 0 };
  static constexpr int on_device = counts;
  static plait_status check(const plait_call *call) {
    return check_fractions(call, {beta1, beta2});
  }
  template <class N, class T>
  static RuleOf<N> rule_of(const plait_value *in, const T &t) {
    RuleOf<N> r{};
    r.scale = gradient_scale(in, maximize);
    r.l2 = in[weight_decay].u.f;
    r.weight1 = 1 - in[beta1].u.f;
    r.beta2 = in[beta2].u.f;
    r.eps = in[eps].u.f;
    r.step = N(in[lr].u.f) / bias_correction(in[beta1].u.f, t);
    return r;
  }
  static Rule rule(const plait_value *in, uint32_t, int64_t t) { return rule_of<double>(in, t); }
};

}  // namespace

const Step adamax = elementwise<AdamaxSpec>(
    "adamax_step(Tensor[]! params, Tensor[] grads, Tensor[]! exp_avgs, Tensor[]! exp_infs, int[] "
    "steps, "
    "*, float lr=0.002, float beta1=0.9, float beta2=0.999, float eps=1e-08, float weight_decay=0, "
    "Tensor? counts=None, bool maximize=False, Tensor|Scalar grad_scale=1) -> ()",
    "One step of Adamax, Adam with the largest gradient in place of their squares, over all "
    "parameters, in place.\n"
    "\n" PLAIT_DOC_GRADIENT
    "g += weight_decay * p; m += (1 - beta1) * (g - m); u = max(beta2 * u, |g| + eps);\n"
    "p -= lr / (1 - beta1^t) * m / u.\n" PLAIT_DOC_COUNTS PLAIT_DOC_DTYPES
    "Kingma and Ba 2015, section 7.1.");

}  // namespace plait::optim
