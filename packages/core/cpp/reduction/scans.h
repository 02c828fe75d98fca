// The types in which scans carry a result to the next one. float32 is carried in float64: an error
// of one result would be in all that follow.
#pragma once
#include "kernel/kernel.h"
#include "pointwise/math.h"

namespace plait::core {

template <class T>
struct Carried {
  using type = scalar::math::wide<T>;
};
template <>
struct Carried<float> {
  using type = double;
};
template <>
struct Carried<Complex64> {
  using type = Complex128;
};

}  // namespace plait::core
