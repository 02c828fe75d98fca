// The largest and smallest elements: amax, amin, max, min.
#include "reduction/reductions.h"

namespace plait::core {
namespace {

template <class Op>
plait_status reduce_order(const plait_call *c, uint64_t mask) {
  const Kind k = kind(result(c)->dtype);
  Reduction r;
  describe(tensor(c, 0), mask, &r);
  if (k == Bool) return reduce_as<Op, uint8_t>(c, r, nullptr, false);
  if (k == F16) return reduce_halves_as<Op, Half>(c, r, widen_halves<F16>, false);
  if (k == BF16) return reduce_halves_as<Op, Bfloat>(c, r, widen_halves<BF16>, false);
  PLAIT_NUMERIC(k, return (reduce_as<Op, T>(c, r, nullptr, false)))
  return PLAIT_OK;
}

plait_status amax(plait_call *c) { return reduce_order<Max>(c, reduced_dims(c)); }
plait_status amin(plait_call *c) { return reduce_order<Min>(c, reduced_dims(c)); }
plait_status max(plait_call *c) { return reduce_order<Max>(c, all_dims(tensor(c, 0)->ndim)); }
plait_status min(plait_call *c) { return reduce_order<Min>(c, all_dims(tensor(c, 0)->ndim)); }

PLAIT_KERNEL("amax", amax);
PLAIT_KERNEL("amin", amin);
PLAIT_KERNEL("max", max);
PLAIT_KERNEL("min", min);

}  // namespace
}  // namespace plait::core
