#include "elementwise.hpp"

namespace plait::optim {
namespace {

enum { averages, values, weight };

struct AverageSpec {
  using Rule = optim::Average;
  enum : uint32_t { n_lists = 2, optional = 0, counted = 0, own = 0 };
  static plait_status check(const plait_call *) { return PLAIT_OK; }
  static Rule rule(const plait_value *in, uint32_t, int64_t) {
    Rule r{};
    r.weight = in[weight].u.f;
    return r;
  }
};

}  // namespace

const Step average = elementwise<AverageSpec>(
    "average_step(Tensor[]! averages, Tensor[] values, *, float weight) -> ()",
    "Takes values into running averages, in place: a += weight * (value - a).\n" PLAIT_DOC_DTYPES);

}  // namespace plait::optim
