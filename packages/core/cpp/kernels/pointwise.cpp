#include "kernels/pointwise.h"

namespace plait::core {
namespace {

// The operands' common kind. Where all are numbers it is the result's, or the widest that the
// numbers have.
Kind operand_kind(const plait_call *c, const PointwiseOp &op) {
  for (int i = 0; i < op.n_operands; i++)
    if (c->in[i].tag == PLAIT_TENSOR) return kind(c->in[i].u.t->dl.dtype);
  if (!op.to_bool) return kind(result(c)->dtype);
  bool real = false;
  for (int i = 0; i < op.n_operands; i++) real |= c->in[i].tag == PLAIT_FLOAT;
  return real ? F64 : I64;
}

PLAIT_INLINE void read_params(const plait_call *c, const PointwiseOp &op, Params *q) {
  for (int j = 0; j < op.n_params; j++) {
    const plait_value &v = c->in[op.n_operands + j];
    if (v.tag == PLAIT_FLOAT) {
      q->f[j] = v.u.f;
      q->i[j] = v.u.f >= -9.2e18 && v.u.f <= 9.2e18 ? int64_t(v.u.f) : 0;
    } else {
      q->i[j] = v.tag == PLAIT_NONE ? 0 : v.u.i;
      q->f[j] = double(q->i[j]);
    }
  }
}

}  // namespace

bool all_small(const float *x, int64_t n) {
  uint32_t largest = 0;
  for (int64_t i = 0; i < n; i++) {
    uint32_t u;
    memcpy(&u, x + i, 4);
    u &= 0x7fffffffu;
    largest = u > largest ? u : largest;
  }
  return largest < 0x4d800000u;
}

plait_status run_pointwise(plait_call *c, const PointwiseOp &op) {
  const Kind k = operand_kind(c, op);
  if (PLAIT_UNLIKELY(unsigned(k) >= unsigned(kArithmetic) || !op.loop[k])) return PLAIT_DECLINE;
  const DLTensor *out = result(c);
  Params params;
  read_params(c, op, &params);
  alignas(16) char number[kMaxOperands][16];
  if (PLAIT_LIKELY(numel(out) == 1)) {  // then so are the operands: nothing to plan
    char *in[kMaxOperands];
    for (int i = 0; i < op.n_operands; i++) {
      const plait_value &v = c->in[i];
      in[i] = v.tag == PLAIT_TENSOR ? static_cast<char *>(v.u.t->dl.data) : number[i];
      if (v.tag != PLAIT_TENSOR) store_number(k, v, number[i]);
    }
    op.loop[k](static_cast<char *>(out->data), in, 1, &params);
    return PLAIT_OK;
  }
  const int item = size_of(k);
  Inner inner{op.loop[k], &params, {op.to_bool ? 1 : item, item, item, item, item}};
  Plan plan;
  plan.add(out, inner.item[0]);
  for (int i = 0; i < op.n_operands; i++) {
    const plait_value &v = c->in[i];
    if (v.tag == PLAIT_TENSOR) {
      plan.add(&v.u.t->dl, item);
    } else {
      store_number(k, v, number[i]);
      plan.add_constant(number[i]);
    }
  }
  plan.finish();
  run_elementwise(c, plan, inner);
  return PLAIT_OK;
}

}  // namespace plait::core
