// The table of definitions that register.cpp (generated) fills, and the shape functions that most
// operators share.
#pragma once
#include "promotion.hpp"
#include "scope.hpp"

namespace plait::ops {

enum class Promote : uint8_t { same, floating, boolean, first, number };

struct PointwiseRule {
  Promote promote;
  Group group;         // of dtypes to compute in
  uint32_t operands;   // bits of the arguments that are tensors or stand for tensors
  uint32_t conditions; // of those, the bool ones that do not count in promotion
  // of those, the ones that count as numbers if they are 0-d and other operands are halves
  uint32_t unrounded;
  int8_t factor;       // position of a number that must be whole for integers, or -1
  bool real;           // results for complex numbers are real
  bool exact;          // numbers must fit in the dtype
  bool c_order;        // results are in C order; else in the order of an operand
};

enum class ReductionResult : uint8_t { same, sum, floating, real, boolean, int64 };
struct ReductionRule {
  ReductionResult result;
  Group group;
  bool identity;                 // an empty reduction has a value
  bool none;                     // an empty list of dimensions reduces none, not all
  int8_t dim, keepdim, dtype, correction;  // positions of these arguments, or -1
};

// plait_op::def points to `def`, so a shared shape function finds the rule after it.
struct Definition {
  plait_op_def def;
  PointwiseRule pointwise;
  ReductionRule reduction;
};
inline const Definition *definition(const plait_op *op) {
  return reinterpret_cast<const Definition *>(op->def);
}

plait_status pointwise_shape(plait_call *);
plait_status reduction_shape(plait_call *);

// Derivatives.

// Of operators whose results are truth values or integers. It makes an engine call the operator
// itself: without it, an engine would take the decomposition apart to look for a derivative.
plait_status no_derivative(plait_vjp *);
void saves_nothing(const plait_call *, uint64_t need, plait_needs *);

// Bit positions of plait_needs::in, ::meta and plait_vjp::need: the tensor-valued arguments
// (Tensor, Tensor?, Tensor|Scalar, each entry of a Tensor[]) are counted through in the order of
// the schema; others take none. A number or None for such an argument keeps its position and is
// never needed. From position 63 on all share bit 63.
inline uint64_t bit(uint64_t position) { return uint64_t(1) << (position < 63 ? position : 63); }
uint64_t position_of(const plait_op *op, const plait_value *in, uint32_t argument);
// the bits of one argument, those of all its entries for a list; 0 for a number or None
uint64_t bits_of(const plait_op *op, const plait_value *in, uint32_t argument);
// operands of a pointwise call whose shape or dtype may differ from the result's, of those in
// `need`
uint64_t broadcast_bits(const plait_call *c, uint64_t need);
// sums over dimensions that were broadcast from `meta` and casts to its dtype; unchanged if meta is
// None
Tensor reduce_to(const Scope &x, Tensor g, const plait_value &meta);

const plait_op *const *operators();  // by Op; generated
// defines all operators; generated
plait_status define_all(const plait_runtime *runtime);

}  // namespace plait::ops
