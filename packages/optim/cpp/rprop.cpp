#include "elementwise.hpp"

namespace plait::optim {
namespace {

enum {
  params,
  grads,
  prevs,
  step_sizes,
  steps,
  etaminus,
  etaplus,
  step_size_min,
  step_size_max,
  maximize
};

struct RpropSpec {
  using Rule = optim::Rprop;
  enum : uint32_t { n_lists = 4, optional = 0, counted = 1, own = 0 };
  static plait_status check(const plait_call *) { return PLAIT_OK; }
  static Rule rule(const plait_value *in, uint32_t, int64_t) {
    Rule r{};
    r.scale = gradient_scale(in, maximize);
    r.shrink = in[etaminus].u.f;
    r.grow = in[etaplus].u.f;
    r.least = in[step_size_min].u.f;
    r.most = in[step_size_max].u.f;
    return r;
  }
};

}  // namespace

const Step rprop = elementwise<RpropSpec>(
    "rprop_step(Tensor[]! params, Tensor[] grads, Tensor[]! prevs, Tensor[]! step_sizes, int[] "
    "steps, "
    "*, float etaminus=0.5, float etaplus=1.2, float step_size_min=1e-06, float step_size_max=50, "
    "bool maximize=False, Tensor|Scalar grad_scale=1) -> ()",
    "One step of Rprop, which uses the signs of gradients alone, over all parameters, in place.\n"
    "\n" PLAIT_DOC_GRADIENT
    "s *= etaplus where g * q > 0, etaminus where g * q < 0; s is kept in [step_size_min, "
    "step_size_max];\n"
    "g = 0 where g * q < 0; p -= sign(g) * s; q = g.\n" PLAIT_DOC_DTYPES
    "Riedmiller and Braun 1993.");

}  // namespace plait::optim
