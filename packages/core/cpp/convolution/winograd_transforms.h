// The linear maps of Winograd's algorithm F(m x m, r x r) for squares of numbers; r is 3 or 5.
//
// A tile of m results of a convolution with r numbers is a product of polynomials, computed from
// their values at m + r - 1 points: 0, pairs of opposite points, for odd m one more, and infinity.
// In two dimensions each map is applied to the rows of a square and then to the columns of what
// that gives. Numbers of different channels stand side by side in a register.
#pragma once
#include "linalg/tile.h"

namespace plait::core {

// Channels that stand side by side: a panel of a matrix product.
template <class T>
constexpr int64_t kChannels = kPanel<T>;

// Distances, in numbers, between the rows of a square, its columns, and one square and the next.
// An element of a square is kChannels contiguous numbers.
struct SquareSteps {
  int64_t row, column, next;
};

// Maps `count` squares. `shift`: kChannels numbers that are added to each element of the results,
// or NULL.
template <class T>
using SquareMap = void (*)(int64_t count, const T *from, SquareSteps source, T *to,
                           SquareSteps target, const T *shift);

// The maps of one size of tile, with a = m + r - 1:
//   input      a x a numbers of an image        -> their values at a x a points
//   filter     r x r weights                    -> values
//   output     products of these two            -> m x m results
//   gradient   m x m gradients of results       -> values
//   weight     products of input and gradient   -> r x r gradients of weights
template <class T>
struct WinogradMaps {
  SquareMap<T> input, filter, output, gradient, weight;
};

// m is 2, 4, 5 or 6 for windows of 3, and 2, 3 or 4 for windows of 5.
template <class T>
const WinogradMaps<T> &winograd_maps(int64_t window, int64_t m);

}  // namespace plait::core
