// Which dtypes have which reductions.
#ifndef PLAIT_COLLECTIVES_REDUCIBLE_HPP
#define PLAIT_COLLECTIVES_REDUCIBLE_HPP
#include "../plait.hpp"

namespace plait::collectives {

// Whether `reduce` has the operation for the dtype. Apart from it, so that a library compiles the
// loops in one file.
inline bool can_reduce(DLDataType d, uint32_t reduction) {
  const bool is_float = d.code == kDLFloat || d.code == kDLBfloat;
  const bool is_integer = d.code == kDLInt || d.code == kDLUInt;
  if (d.lanes != 1 || (!is_float && !is_integer && d.code != kDLBool && d.code != kDLComplex))
    return false;
  switch (reduction) {
    case PLAIT_REDUCE_SUM:
    case PLAIT_REDUCE_PRODUCT: return true;
    case PLAIT_REDUCE_AVERAGE: return is_float || d.code == kDLComplex;
    case PLAIT_REDUCE_MIN:
    case PLAIT_REDUCE_MAX: return d.code != kDLComplex;
    case PLAIT_REDUCE_AND:
    case PLAIT_REDUCE_OR:
    case PLAIT_REDUCE_XOR: return is_integer || d.code == kDLBool;
    default: return false;
  }
}

}  // namespace plait::collectives
#endif  // PLAIT_COLLECTIVES_REDUCIBLE_HPP
