// Sums, products and conditions of numbers that may be stored in another dtype than they are
// reduced in: sum, mean, prod, any, all, count_nonzero.
#include "reduction/reductions.h"

namespace plait::core {
namespace {

// Sums and products wrap around: signed integers are treated as the unsigned ones of their size.
template <class Op>
plait_status reduce_arithmetic(const plait_call *c, uint64_t mask, bool mean) {
  const Kind own = kind(tensor(c, 0)->dtype), k = kind(result(c)->dtype);
  Reduction r;
  describe(tensor(c, 0), mask, &r);
  if (own != k) {
    const auto convert = converter_of_integers<uint64_t, AsIs>(own);
    if (!convert || (k != I64 && k != U64)) return PLAIT_DECLINE;
    return reduce_as<Op, uint64_t>(c, r, convert, mean);
  }
  switch (k) {
    PLAIT_CASE(F32, float, return (reduce_as<Op, T>(c, r, nullptr, mean)))
    PLAIT_CASE(F64, double, return (reduce_as<Op, T>(c, r, nullptr, mean)))
    PLAIT_CASE(F16, Half, return (reduce_halves_as<Op, T>(c, r, widen_halves<F16>, mean)))
    PLAIT_CASE(BF16, Bfloat, return (reduce_halves_as<Op, T>(c, r, widen_halves<BF16>, mean)))
    case I64:
      PLAIT_CASE_IF(selects(I64) || selects(U64), U64, uint64_t,
                    return (reduce_as<Op, T>(c, r, nullptr, mean)))
    case I32:
      PLAIT_CASE_IF(selects(I32) || selects(U32), U32, uint32_t,
                    return (reduce_as<Op, T>(c, r, nullptr, mean)))
    case I16:
    case U16:
    case I8:
      PLAIT_CASE_IF(selects_size(2) || selects(I8) || selects(U8), U8, uint32_t,
                    return (reduce_as<Op, T>(c, r, converter_of_integers<T, AsIs>(k), mean)))
    default: return PLAIT_DECLINE;
  }
  return PLAIT_DECLINE;
}

template <class T>
Convert<T> is_not_zero(Kind k) {
  const auto convert = converter_of_integers<T, NotZero>(k);
  return convert ? convert : converter_of_floats<T, NotZero>(k);
}

// any and all, of the condition "is not 0"
template <class Op>
plait_status reduce_truth(const plait_call *c, uint64_t mask) {
  const Kind own = kind(tensor(c, 0)->dtype);
  if (own == Unknown || is_float8(own)) return PLAIT_DECLINE;
  Reduction r;
  describe(tensor(c, 0), mask, &r);
  if (r.reduced.count == 0) {  // what a reduction of bytes starts from may be no bool
    memset(data<uint8_t>(result(c)), Op::template start<uint8_t>() != 0, size_t(r.kept.count));
    return PLAIT_OK;
  }
  return reduce_as<Op, uint8_t>(c, r, own == Bool ? nullptr : is_not_zero<uint8_t>(own), false);
}

plait_status sum(plait_call *c) {
  if (kind(result(c)->dtype) == Bool) return reduce_truth<Max>(c, reduced_dims(c));
  return reduce_arithmetic<Sum>(c, reduced_dims(c), false);
}
plait_status mean(plait_call *c) { return reduce_arithmetic<Sum>(c, reduced_dims(c), true); }
plait_status prod(plait_call *c) {
  if (kind(result(c)->dtype) == Bool) return reduce_truth<Min>(c, all_dims(tensor(c, 0)->ndim));
  return reduce_arithmetic<Product>(c, all_dims(tensor(c, 0)->ndim), false);
}
plait_status prod_dim(plait_call *c) {
  if (kind(result(c)->dtype) == Bool) return reduce_truth<Min>(c, reduced_dims(c));
  return reduce_arithmetic<Product>(c, reduced_dims(c), false);
}

PLAIT_KERNEL("sum", sum);
PLAIT_KERNEL("mean", mean);
PLAIT_KERNEL("prod", prod);
PLAIT_KERNEL("prod.dim", prod_dim);

plait_status any(plait_call *c) { return reduce_truth<Max>(c, all_dims(tensor(c, 0)->ndim)); }
plait_status all(plait_call *c) { return reduce_truth<Min>(c, all_dims(tensor(c, 0)->ndim)); }
uint64_t truth_dims(const plait_call *c) {
  return c->in[1].tag == PLAIT_INTS && c->in[1].n == 0 ? 0 : reduced_dims(c);
}
plait_status any_dim(plait_call *c) { return reduce_truth<Max>(c, truth_dims(c)); }
plait_status all_dim(plait_call *c) { return reduce_truth<Min>(c, truth_dims(c)); }
PLAIT_KERNEL("any", any);
PLAIT_KERNEL("all", all);
PLAIT_KERNEL("any.dim", any_dim);
PLAIT_KERNEL("all.dim", all_dim);

plait_status count_nonzero(plait_call *c) {
  const Kind own = kind(tensor(c, 0)->dtype);
  if (own == Unknown || is_float8(own)) return PLAIT_DECLINE;
  Reduction r;
  describe(tensor(c, 0), reduced_dims(c), &r);
  return reduce_as<Sum, uint64_t>(c, r, is_not_zero<uint64_t>(own), false);
}
PLAIT_KERNEL("count_nonzero", count_nonzero);

}  // namespace
}  // namespace plait::core
