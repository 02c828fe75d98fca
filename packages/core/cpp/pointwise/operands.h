// What pointwise kernels of all devices read from a call.
#pragma once
#include "kernel/kernel.h"

namespace plait::core {

// The common kind of the first `operands` arguments. If all are numbers, it is the result's; the
// widest of the numbers where `is_predicate`, whose results are bool.
inline Kind operand_kind(const plait_call *c, int operands, bool is_predicate) {
  for (int i = 0; i < operands; i++)
    if (c->in[i].tag == PLAIT_TENSOR) return kind(c->in[i].u.t->dl.dtype);
  if (!is_predicate) return kind(result(c)->dtype);
  int32_t tag = PLAIT_INT;
  for (int i = 0; i < operands; i++) tag = c->in[i].tag > tag ? c->in[i].tag : tag;
  return tag == PLAIT_COMPLEX ? C128 : tag == PLAIT_FLOAT ? F64 : I64;
}

// A number as kernels of each kind of dtypes want it.
struct Number {
  double real, imaginary;
  int64_t integer;
};
inline Number number_of(const plait_value &v) {
  if (v.tag == PLAIT_FLOAT || v.tag == PLAIT_COMPLEX) {
    const double x = v.tag == PLAIT_FLOAT ? v.u.f : v.u.fs[0];
    return {x, v.tag == PLAIT_COMPLEX ? v.u.fs[1] : 0,
            x >= -9.2e18 && x <= 9.2e18 ? int64_t(x) : 0};
  }
  const int64_t i = v.tag == PLAIT_NONE ? 0 : v.u.i;
  return {double(i), 0, i};
}

}  // namespace plait::core
