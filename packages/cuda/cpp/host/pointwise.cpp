#include "host/pointwise.h"

namespace plait::cuda {
namespace {

// The operands' common kind. If all are numbers, it is the result's, or the widest of the numbers.
Kind operand_kind(const plait_call *c, int operands, int to) {
  for (int i = 0; i < operands; i++)
    if (c->in[i].tag == PLAIT_TENSOR) return kind(c->in[i].u.t->dl.dtype);
  if (to != result_as::BOOL) return kind(result(c)->dtype);
  int32_t tag = PLAIT_INT;
  for (int i = 0; i < operands; i++) tag = c->in[i].tag > tag ? c->in[i].tag : tag;
  return tag == PLAIT_COMPLEX ? C128 : tag == PLAIT_FLOAT ? F64 : I64;
}

struct Number {
  double real, imaginary;
  int64_t integer;
};
Number number_of(const plait_value &v) {
  if (v.tag == PLAIT_FLOAT || v.tag == PLAIT_COMPLEX) {
    const double x = v.tag == PLAIT_FLOAT ? v.u.f : v.u.fs[0];
    return {x, v.tag == PLAIT_COMPLEX ? v.u.fs[1] : 0,
            x >= -9.2e18 && x <= 9.2e18 ? int64_t(x) : 0};
  }
  const int64_t i = v.tag == PLAIT_NONE ? 0 : v.u.i;
  return {double(i), 0, i};
}

// A number of the host, or of a 0-d tensor of the CPU, whose bytes the host can read.
Number number_of(const DLTensor *t) {
  const Kind k = kind(t->dtype);
  plait_value v{PLAIT_INT, 0, {0}};
  double pair[2] = {0, 0};
  switch (k) {
#define PLAIT_READ(K, T) \
  case K: v.u.i = int64_t(*data<T>(t)); break;
    PLAIT_READ(Bool, bool)
    PLAIT_READ(U8, uint8_t)
    PLAIT_READ(I8, int8_t)
    PLAIT_READ(U16, uint16_t)
    PLAIT_READ(I16, int16_t)
    PLAIT_READ(U32, uint32_t)
    PLAIT_READ(I32, int32_t)
    PLAIT_READ(U64, uint64_t)
    PLAIT_READ(I64, int64_t)
#undef PLAIT_READ
    case F32: v.tag = PLAIT_FLOAT, v.u.f = double(*data<float>(t)); break;
    case F64: v.tag = PLAIT_FLOAT, v.u.f = *data<double>(t); break;
    case F16: v.tag = PLAIT_FLOAT, v.u.f = double(widen(*data<Half>(t))); break;
    case BF16: v.tag = PLAIT_FLOAT, v.u.f = double(widen(*data<BFloat>(t))); break;
    case C64:
      v.tag = PLAIT_COMPLEX, pair[0] = double(data<float>(t)[0]),
      pair[1] = double(data<float>(t)[1]);
      v.u.fs = pair;
      break;
    case C128:
      v.tag = PLAIT_COMPLEX, pair[0] = data<double>(t)[0], pair[1] = data<double>(t)[1];
      v.u.fs = pair;
      break;
    default: break;
  }
  return number_of(v);
}

}  // namespace

template <int operands>
plait_status run_pointwise(plait_call *c, const PointwiseFacts &f) {
  const Kind k = operand_kind(c, operands, f.to);
  const DLTensor *out = result(c);
  PointwiseArgs<operands> a{};
  a.n = numel(out);
  if (!a.n) return PLAIT_OK;
  const int item = size_of(k);
  int items[operands + 1];
  items[0] = size_of(kind(out->dtype));
  Plan plan;
  plan.add(out, items[0]);
  for (int i = 0; i < operands; i++) {
    const plait_value &v = c->in[i];
    items[i + 1] = item;
    const bool on_host = v.tag == PLAIT_TENSOR && v.u.t->dl.device.device_type == kDLCPU;
    if (v.tag == PLAIT_TENSOR && !on_host) {
      plan.add(&v.u.t->dl, item);
      continue;
    }
    const Number x = on_host ? number_of(&v.u.t->dl) : number_of(v);
    a.is_number |= 1u << i;
    a.number[i][0] = x.real, a.number[i][1] = x.imaginary, a.integer[i] = x.integer;
    plan.add_constant(nullptr);
  }
  for (int j = 0; j < f.n_params; j++) {
    const Number x = number_of(c->in[operands + j]);
    a.param[j] = x.real, a.imaginary[j] = x.imaginary, a.integer_param[j] = x.integer;
  }
  plan.finish();
  a.is_dense = plan.ndim == 1;
  for (int i = 0; i <= operands; i++) {
    a.data[i] = plan.data[i];
    const bool is_number = i > 0 && (a.is_number >> (i - 1) & 1);
    if (!is_number && plan.stride[i][0] != items[i] && a.n > 1) a.is_dense = 0;
  }
  if (!a.is_dense && !make_walk(plan, &a.walk))
    return PLAIT_FAIL(c, PLAIT_NOT_IMPLEMENTED,
                      "operands of more than %d dimensions that cannot be merged have no kernel",
                      kWalkDims);
  if (f.is_bounded) a.fault = fault_of(c), a.low = f.low, a.high = f.high;
  return launch(c, *f.kernel, k, a, blocks_for(c, a.n, 256), 256);
}

template plait_status run_pointwise<1>(plait_call *, const PointwiseFacts &);
template plait_status run_pointwise<2>(plait_call *, const PointwiseFacts &);
template plait_status run_pointwise<3>(plait_call *, const PointwiseFacts &);
template plait_status run_pointwise<4>(plait_call *, const PointwiseFacts &);

}  // namespace plait::cuda
