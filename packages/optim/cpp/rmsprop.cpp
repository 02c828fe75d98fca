#include "elementwise.hpp"

namespace plait::optim {
namespace {

enum {
  params,
  grads,
  square_avgs,
  momentum_buffers,
  grad_avgs,
  steps,
  lr,
  alpha,
  eps,
  weight_decay,
  momentum,
  maximize
};

struct RmsPropSpec {
  using Rule = optim::RmsProp;
  enum : uint32_t {
    n_lists = 5,
    optional = 1u << momentum_buffers | 1u << grad_avgs,
    counted = 1,
    own = 0
  };
  static plait_status check(const plait_call *) { return PLAIT_OK; }
  static Rule rule(const plait_value *in, uint32_t, int64_t) {
    Rule r{};
    r.scale = gradient_scale(in, maximize);
    r.l2 = in[weight_decay].u.f;
    r.lr = in[lr].u.f;
    r.alpha = in[alpha].u.f;
    r.weight = 1 - r.alpha;
    r.eps = in[eps].u.f;
    r.momentum = in[momentum].u.f;
    if (in[momentum_buffers].n) r.flags |= Rule::with_momentum;
    if (in[grad_avgs].n) r.flags |= Rule::centered;
    return r;
  }
};

}  // namespace

const Step rmsprop = elementwise<RmsPropSpec>(
    "rmsprop_step(Tensor[]! params, Tensor[] grads, Tensor[]! square_avgs, Tensor[]! "
    "momentum_buffers, "
    "Tensor[]! grad_avgs, int[] steps, *, float lr=0.01, float alpha=0.99, float eps=1e-08, "
    "float weight_decay=0, float momentum=0, "
    "bool maximize=False, Tensor|Scalar grad_scale=1) -> ()",
    "One step of RMSprop over all parameters, in place; with momentum if `momentum_buffers` is "
    "non-empty, centered if `grad_avgs` is.\n"
    "\n" PLAIT_DOC_GRADIENT
    "g += weight_decay * p; v = alpha * v + (1 - alpha) * g^2; a += (1 - alpha) * (g - a);\n"
    "d = g / (sqrt(v) + eps), or g / (sqrt(v - a^2) + eps) if centered; b = momentum * b + d;\n"
    "p -= lr * b with momentum, else lr * d.\n" PLAIT_DOC_DTYPES
    "Hinton 2012 (lecture 6e), Graves 2013.");

}  // namespace plait::optim
