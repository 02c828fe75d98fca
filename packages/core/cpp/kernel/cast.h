// Conversions of contiguous runs between dtypes.
#pragma once
#include "kernel/elementwise.h"

namespace plait::core {

struct CastSteps {  // one loop, or two with a buffer between them
  Loop first, second;
  int from, to;  // bytes of an element
};
CastSteps cast_steps(Kind from, Kind to);  // neither is complex
Loop complex_to_bool(Kind from);
void run_cast(char *out, char *const *in, int64_t n,
              const void *steps);  // a Loop over const CastSteps

}  // namespace plait::core
