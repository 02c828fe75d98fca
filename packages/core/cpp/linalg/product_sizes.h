// The sizes of the matrix products of a build for one program (`plait_graph.bundle`), which leaves
// out the ways to multiply that it does not choose for one of them.
#pragma once
#include "kernel/kernel.h"

namespace plait::core {

// An m x k matrix times a k x n matrix. Sizes that are not listed are multiplied too, more slowly.
struct ProductSizes {
  int64_t m, n, k;
  bool turned;  // columns of the k x n matrix are contiguous, as those of a layer's weight are
  bool is_known = true;  // false: the program has products of any sizes
};

}  // namespace plait::core
#ifdef PLAIT_SELECTION
#include "product_sizes_of_program.h"
#else
namespace plait::core {
// Whether a condition is true for the sizes of a product that the program has.
template <class Condition>
constexpr bool any_product(Condition) {
  return true;
}
}  // namespace plait::core
#endif
