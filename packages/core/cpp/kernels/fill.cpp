// One value everywhere: fill_, zero_, full, zeros, ones and their like.
#include "kernels/copy.h"
#include "kernels/elementwise.h"

namespace plait::core {
namespace {

struct Pattern {
  char bytes[64];  // the element, repeated
  int item;
  bool uniform;  // every byte is the same
};

void fill_loop(char *out, char *const *, int64_t n, const void *context) {
  const Pattern &p = *static_cast<const Pattern *>(context);
  const int64_t bytes = n * p.item;
  if (p.uniform) {
    memset(out, p.bytes[0], size_t(bytes));
    return;
  }
  int64_t i = 0;
  for (; i + 64 <= bytes; i += 64) memcpy(out + i, p.bytes, 64);
  if (i < bytes) memcpy(out + i, p.bytes, size_t(bytes - i));
}

// The shape functions have seen that the number fits.
plait_status fill_with(const plait_call *c, const DLTensor *to, const plait_value &v) {
  return v.tag == PLAIT_TENSOR ? copy(c, to, &v.u.t->dl) : fill(c, to, v);
}

plait_value number(int64_t i) {
  plait_value v{PLAIT_INT, 0, {0}};
  v.u.i = i;
  return v;
}

plait_status fill_(plait_call *c) { return fill_with(c, tensor(c, 0), c->in[1]); }
plait_status full(plait_call *c) { return fill_with(c, result(c), c->in[1]); }
plait_status zero_(plait_call *c) { return fill(c, tensor(c, 0), number(0)); }
plait_status zeros(plait_call *c) { return fill(c, result(c), number(0)); }
plait_status ones(plait_call *c) { return fill(c, result(c), number(1)); }
plait_status empty(plait_call *) { return PLAIT_OK; }

PLAIT_KERNEL("fill_", fill_);
PLAIT_KERNEL("full", full);
PLAIT_KERNEL("full_like", full);
PLAIT_KERNEL("zero_", zero_);
PLAIT_KERNEL("zeros", zeros);
PLAIT_KERNEL("zeros_like", zeros);
PLAIT_KERNEL("ones", ones);
PLAIT_KERNEL("ones_like", ones);
PLAIT_KERNEL("empty", empty);
PLAIT_KERNEL("empty_like", empty);
PLAIT_KERNEL("empty_strided", empty);

}  // namespace

plait_status fill(const plait_call *c, const DLTensor *to, const plait_value &value) {
  const Kind k = kind(to->dtype);
  if (k == Unknown) return PLAIT_DECLINE;
  Pattern p;
  p.item = size_of(k);
  alignas(16) char element[16] = {};
  store_number(k, value, element);
  p.uniform = true;
  for (int i = 0; i < 64; i++) {
    p.bytes[i] = element[i % p.item];
    p.uniform &= p.bytes[i] == p.bytes[0];
  }
  Plan plan;
  plan.add(to, p.item);
  plan.finish();
  const Inner inner{fill_loop, &p, {p.item}};
  run_elementwise(c, plan, inner);
  return PLAIT_OK;
}

}  // namespace plait::core
