// neg, abs and copysign of float16 and bfloat16, which change no bit but the sign.
#include "kernel/elementwise.h"

namespace plait::core {
namespace {

constexpr uint16_t kSign = 0x8000;

template <class F>
PLAIT_INLINE void each(char *out, int64_t n, F &&f) {
  uint16_t *r = reinterpret_cast<uint16_t *>(out);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; i++) r[i] = uint16_t(f(i));
}
const uint16_t *bits(const char *in) { return reinterpret_cast<const uint16_t *>(in); }

void neg_loop(char *out, char *const *in, int64_t n, const void *) {
  each(out, n, [x = bits(in[0])](int64_t i) { return x[i] ^ kSign; });
}
void abs_loop(char *out, char *const *in, int64_t n, const void *) {
  each(out, n, [x = bits(in[0])](int64_t i) { return x[i] & ~kSign; });
}
void copysign_loop(char *out, char *const *in, int64_t n, const void *) {
  each(out, n, [size = bits(in[0]), sign = bits(in[1])](int64_t i) {
    return (size[i] & ~kSign) | (sign[i] & kSign);
  });
}

plait_status by_bits(plait_call *c, int operands, Loop loop) {
  const DLTensor *out = result(c);
  const Kind k = kind(out->dtype);
  if (!is_half(k)) return PLAIT_DECLINE;
  Plan plan;
  plan.add(out, 2);
  for (int i = 0; i < operands; i++) {
    if (c->in[i].tag != PLAIT_TENSOR || kind(tensor(c, i)->dtype) != k) return PLAIT_DECLINE;
    plan.add(tensor(c, i), 2);
  }
  plan.finish();
  run_elementwise(c, plan, Inner{loop, nullptr, {2, 2, 2}});
  return PLAIT_OK;
}
plait_status neg(plait_call *c) { return by_bits(c, 1, neg_loop); }
plait_status abs(plait_call *c) { return by_bits(c, 1, abs_loop); }
plait_status copysign(plait_call *c) { return by_bits(c, 2, copysign_loop); }
PLAIT_KERNEL_SPECIAL("neg", neg);
PLAIT_KERNEL_SPECIAL("abs", abs);
PLAIT_KERNEL_SPECIAL("copysign", copysign);

}  // namespace
}  // namespace plait::core
