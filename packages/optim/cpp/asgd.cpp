#include "elementwise.hpp"

namespace plait::optim {
namespace {

enum { params, grads, axs, steps, etas, mus, lambd, weight_decay, maximize };

struct AsgdSpec {
  using Rule = optim::Asgd;
  enum : uint32_t { n_lists = 3, optional = 0, counted = 1, own = 1 };
  static plait_status check(const plait_call *call) {
    const plait_status status = check_per_parameter(call, etas);
    return status == PLAIT_OK ? check_per_parameter(call, mus) : status;
  }
  static Rule rule(const plait_value *in, uint32_t i, int64_t) {
    Rule r{};
    r.scale = gradient_scale(in, maximize);
    r.l2 = in[weight_decay].u.f;
    r.eta = in[etas].u.fs[i];
    r.mu = in[mus].u.fs[i];
    r.keep = 1 - in[lambd].u.f * r.eta;
    if (r.mu != 1) r.flags |= Rule::averaging;
    return r;
  }
};

}  // namespace

const Step asgd = elementwise<AsgdSpec>(
    "asgd_step(Tensor[]! params, Tensor[] grads, Tensor[]! axs, int[] steps, float[] etas, float[] "
    "mus, "
    "*, float lambd=0.0001, float weight_decay=0, "
    "bool maximize=False, Tensor|Scalar grad_scale=1) -> ()",
    "One step of averaged gradient descent over all parameters, in place.\n"
    "\n" PLAIT_DOC_GRADIENT
    "g += weight_decay * p; p = (1 - lambd * eta) * p - eta * g; a += mu * (p - a).\n"
    "`etas` and `mus` hold one number for each parameter.\n" PLAIT_DOC_DTYPES
    "Polyak and Juditsky 1992.");

}  // namespace plait::optim
