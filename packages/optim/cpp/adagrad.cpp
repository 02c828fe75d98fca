#include "elementwise.hpp"

namespace plait::optim {
namespace {

enum { params, grads, sums, steps, lr, lr_decay, eps, weight_decay, maximize };

struct AdagradSpec {
  using Rule = optim::Adagrad;
  enum : uint32_t { n_lists = 3, optional = 0, counted = 1, own = 0 };
  static plait_status check(const plait_call *) { return PLAIT_OK; }
  static Rule rule(const plait_value *in, uint32_t, int64_t t) {
    Rule r{};
    r.scale = gradient_scale(in, maximize);
    r.l2 = in[weight_decay].u.f;
    r.eps = in[eps].u.f;
    r.step = in[lr].u.f / (1 + double(t - 1) * in[lr_decay].u.f);
    return r;
  }
};

}  // namespace

const Step adagrad = elementwise<AdagradSpec>(
    "adagrad_step(Tensor[]! params, Tensor[] grads, Tensor[]! sums, int[] steps, *, float lr=0.01, "
    "float lr_decay=0, float eps=1e-10, float weight_decay=0, "
    "bool maximize=False, Tensor|Scalar grad_scale=1) -> ()",
    "One step of Adagrad over all parameters, in place.\n"
    "\n" PLAIT_DOC_GRADIENT
    "g += weight_decay * p; s += g^2; p -= lr / (1 + (t - 1) * lr_decay) * g / (sqrt(s) + "
    "eps).\n" PLAIT_DOC_DTYPES "Duchi, Hazan and Singer 2011.");

}  // namespace plait::optim
