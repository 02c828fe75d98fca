// What calls of an operator have in common: its name, the shapes and dtypes, and the numbers that
// change its work.
#ifndef PLAIT_PROFILER_SIGNATURE_HPP
#define PLAIT_PROFILER_SIGNATURE_HPP
#include <plait/abi.h>

#include "interning.hpp"

namespace plait::profiler {

// The number of the signature of a call that has ended.
uint32_t signature_of(Recent &, const plait_runtime *, const plait_call *);
// The number of the signature of an event that has only a name.
uint32_t signature_of(Recent &, uint32_t kind, const char *name);

}  // namespace plait::profiler
#endif  // PLAIT_PROFILER_SIGNATURE_HPP
