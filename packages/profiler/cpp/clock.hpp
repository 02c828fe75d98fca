// Nanoseconds of the monotonic clock, which the processes of a machine share.
#ifndef PLAIT_PROFILER_CLOCK_HPP
#define PLAIT_PROFILER_CLOCK_HPP
#include <time.h>

#include <cstdint>

namespace plait::profiler {

inline uint64_t now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return uint64_t(t.tv_sec) * 1000000000u + uint64_t(t.tv_nsec);
}

}  // namespace plait::profiler
#endif  // PLAIT_PROFILER_CLOCK_HPP
