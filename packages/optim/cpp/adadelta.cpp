#include "elementwise.hpp"

namespace plait::optim {
namespace {

enum { params, grads, square_avgs, acc_deltas, steps, lr, rho, eps, weight_decay, maximize };

struct AdadeltaSpec {
  using Rule = optim::Adadelta;
  enum : uint32_t { n_lists = 4, optional = 0, counted = 1, own = 0 };
  static plait_status check(const plait_call *) { return PLAIT_OK; }
  static Rule rule(const plait_value *in, uint32_t, int64_t) {
    Rule r{};
    r.scale = gradient_scale(in, maximize);
    r.l2 = in[weight_decay].u.f;
    r.lr = in[lr].u.f;
    r.rho = in[rho].u.f;
    r.weight = 1 - r.rho;
    r.eps = in[eps].u.f;
    return r;
  }
};

}  // namespace

const Step adadelta = elementwise<AdadeltaSpec>(
    "adadelta_step(Tensor[]! params, Tensor[] grads, Tensor[]! square_avgs, Tensor[]! acc_deltas, "
    "int[] steps, *, float lr=1, float rho=0.9, float eps=1e-06, float weight_decay=0, "
    "bool maximize=False, Tensor|Scalar grad_scale=1) -> ()",
    "One step of Adadelta over all parameters, in place.\n"
    "\n" PLAIT_DOC_GRADIENT
    "g += weight_decay * p; v = rho * v + (1 - rho) * g^2; d = sqrt(u + eps) / sqrt(v + eps) * g;\n"
    "u = rho * u + (1 - rho) * d^2; p -= lr * d.\n" PLAIT_DOC_DTYPES "Zeiler 2012.");

}  // namespace plait::optim
