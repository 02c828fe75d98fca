// where and masked_fill. Elements are only moved, so one instance for each size serves all dtypes.
#include "kernel/elementwise.h"

namespace plait::core {
namespace {

template <class T>
void select_loop(char *out, char *const *in, int64_t n, const void *) {
  T *r = reinterpret_cast<T *>(out);
  const uint8_t *condition = reinterpret_cast<const uint8_t *>(in[0]);
  const T *a = reinterpret_cast<const T *>(in[1]), *b = reinterpret_cast<const T *>(in[2]);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; i++) r[i] = condition[i] ? a[i] : b[i];
}

// out = condition ? yes : no, where yes and no are tensors of the result's dtype or numbers
plait_status select(const plait_call *c, const DLTensor *condition, const plait_value &yes,
                    const plait_value &no) {
  const DLTensor *out = result(c);
  const Kind k = kind(out->dtype);
  if (k == Unknown || kind(condition->dtype) != Bool) return PLAIT_DECLINE;
  const int item = size_of(k);
  alignas(16) char number[2][16];
  Plan plan;
  plan.add(out, item);
  plan.add(condition, 1);
  const plait_value *operand[2] = {&yes, &no};
  for (int i = 0; i < 2; i++) {
    if (operand[i]->tag == PLAIT_TENSOR) {
      if (kind(operand[i]->u.t->dl.dtype) != k) return PLAIT_DECLINE;
      plan.add(&operand[i]->u.t->dl, item);
    } else {
      store_number(k, *operand[i], number[i]);
      plan.add_constant(number[i]);
    }
  }
  plan.finish();
  Inner inner{nullptr, nullptr, {item, 1, item, item}};
  PLAIT_BY_SIZE(item, inner.loop = select_loop<T>)
  run_elementwise(c, plan, inner);
  return PLAIT_OK;
}

plait_status where(plait_call *c) { return select(c, tensor(c, 0), c->in[1], c->in[2]); }
plait_status masked_fill(plait_call *c) { return select(c, tensor(c, 1), c->in[2], c->in[0]); }

PLAIT_KERNEL("where", where);
PLAIT_KERNEL("masked_fill", masked_fill);

}  // namespace
}  // namespace plait::core
