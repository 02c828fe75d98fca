#include "comparisons.hpp"

namespace plait::ops {

std::atomic<ComparisonObserver> comparison_observer{nullptr};

}  // namespace plait::ops

// Sets who is told of comparisons; NULL: nobody.
extern "C" __attribute__((visibility("default"))) void plait_ops_observe_comparisons(
    plait::ops::ComparisonObserver observer);

void plait_ops_observe_comparisons(plait::ops::ComparisonObserver observer) {
  plait::ops::comparison_observer.store(observer, std::memory_order_release);
}
