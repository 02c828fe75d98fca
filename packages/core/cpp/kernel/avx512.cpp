#include "kernel/avx512.h"

#include <cstdlib>

namespace plait::core {

bool has_avx512() {
#if defined(__AVX2__) && defined(__x86_64__)
  static const bool has = [] {
    const char *level = getenv("PLAIT_CPU");
    return !(level && strcmp(level, "avx2") == 0) && __builtin_cpu_supports("avx512f");
  }();
  return has;
#else
  return false;
#endif
}

}  // namespace plait::core
