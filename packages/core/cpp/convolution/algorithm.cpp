#include "convolution/algorithm.h"

#include "kernel/settings.h"

namespace plait::core {
namespace {

// An algorithm for all convolutions, for tests.
constexpr int kByException = -2;
int forced = kByException;

}  // namespace

Algorithm exception_of(ConvolutionPass pass, int64_t window, int64_t stride, int64_t channels,
                       int64_t results) {
  if (reproducible()) return Algorithm::ByRule;
  const int request = __atomic_load_n(&forced, __ATOMIC_RELAXED);
  if (request != kByException) return Algorithm(request);
  const bool picture = (channels == 3 || channels == 4) && results >= 64 * 64;
  if (stride != 1 || !picture) return Algorithm::ByRule;
  // so few channels fill no panel
  if (pass == ConvolutionPass::Forward && (window == 3 || window == 5)) return Algorithm::Columns;
  if (pass == ConvolutionPass::ByWeight && window == 3) return Algorithm::Tiles4;
  return Algorithm::ByRule;
}

}  // namespace plait::core

// For tests: an Algorithm for all convolutions that can be computed by it; -1: the counts of
// operations for all; -2: as at first.
extern "C" __attribute__((visibility("default"))) void plait_core_force_algorithm(int algorithm) {
  __atomic_store_n(&plait::core::forced, algorithm, __ATOMIC_RELAXED);
}
