// How many units work is cut into.
#pragma once
#include "kernel/kernel.h"

namespace plait::core {

// Units of parallel work that are wanted: `few`, or two for each thread of many. This is for cuts
// that leave every result's own sum as it is; what is added up in parts is cut by its size alone.
inline int64_t units_wanted(int64_t few) {
  const plait_executor *e = PLAIT_ROLE(plait_executor, roles.executor);
  const int64_t two_each = 2 * int64_t(e->width(e->ctx));
  return two_each > few ? two_each : few;
}

}  // namespace plait::core
