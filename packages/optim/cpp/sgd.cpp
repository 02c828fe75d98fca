#include "elementwise.hpp"

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

struct SgdSpec {
  using Rule = optim::Sgd;
  enum : uint32_t { n_lists = 3, optional = 1u << momentum_buffers, counted = 1, own = 0 };
  static plait_status check(const plait_call *) { return PLAIT_OK; }
  static Rule rule(const plait_value *in, uint32_t, int64_t t) {
    Rule r{};
    r.scale = gradient_scale(in, maximize);
    r.l2 = in[weight_decay].u.f;
    r.lr = in[lr].u.f;
    r.momentum = in[momentum].u.f;
    r.damped = 1 - in[dampening].u.f;
    if (in[momentum_buffers].n) {
      r.flags |= Rule::with_momentum;
      if (t == 1) r.flags |= Rule::first;
      if (in[nesterov].u.i) r.flags |= Rule::nesterov;
    }
    return r;
  }
};

}  // namespace

const Step sgd = elementwise<SgdSpec>(
    "sgd_step(Tensor[]! params, Tensor[] grads, Tensor[]! momentum_buffers, int[] steps, *, float "
    "lr=0.001, "
    "float momentum=0, float dampening=0, float weight_decay=0, bool nesterov=False, "
    "bool maximize=False, Tensor|Scalar grad_scale=1) -> ()",
    "One step of gradient descent over all parameters, in place; with momentum if "
    "`momentum_buffers` is non-empty.\n"
    "\n" PLAIT_DOC_GRADIENT
    "g += weight_decay * p; b = g if t is 1, else momentum * b + (1 - dampening) * g;\n"
    "g = g + momentum * b with `nesterov`, else b; p -= lr * g.\n" PLAIT_DOC_DTYPES
    "Sutskever et al. 2013, in the form that PyTorch uses.");

}  // namespace plait::optim
