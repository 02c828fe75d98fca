// The largest and smallest elements, and where they are: max, min, amax, amin, max.dim, min.dim,
// argmax, argmin. NaN counts as largest and as smallest; the first of equal elements is taken.
#include "block/reduce.h"
#if PLAIT_HOST
#include "host/reduce.h"
#endif

namespace plait::cuda {

namespace extreme_mode {
enum { SMALLEST, LARGEST };
}

#if PLAIT_KERNELS
template <class T>
PLAIT_DEVICE T least_number() {
  if constexpr (scalar::math::is_floating<T>) return -T(scalar::math::kInf);
  if constexpr (!scalar::math::is_floating<T> && T(-1) > T(0)) return T(0);
  if constexpr (!scalar::math::is_floating<T> && !(T(-1) > T(0)))
    return T(uint64_t(1) << (sizeof(T) * 8 - 1));
}
template <class T>
PLAIT_DEVICE T greatest_number() {
  if constexpr (scalar::math::is_floating<T>)
    return T(scalar::math::kInf);
  else if constexpr (std::is_same_v<T, bool>)
    return true;
  else
    return T(~least_number<T>());
}

template <class E>
struct Extreme : Elements<E> {
  using Value = Compute<E>;
  bool largest;
  PLAIT_DEVICE Extreme(Thread &t, const ReduceArgs &a)
      : Elements<E>(t, a), largest(a.mode == extreme_mode::LARGEST) {}
  PLAIT_DEVICE Value start() const {
    return largest ? least_number<Value>() : greatest_number<Value>();
  }
  PLAIT_DEVICE Value step(Value a, Value b) const {
    return (largest ? b > a : b < a) || b != b ? b : a;
  }
  template <int N, int width>
  PLAIT_DEVICE void fold(Value &value, const E *x, int64_t, int64_t) const {
#pragma unroll
    for (int k = 0; k < N; k++) value = step(value, widen(x[k]));
  }
  PLAIT_DEVICE void finish(Thread &t, const ReduceArgs &a, int64_t i, Value value) const {
    t.global<E>(a.out).store(i, narrow<E>(value));
  }
};

template <class T>
struct Place {
  int64_t at;  // -1: no element yet
  T value;
};

template <class E>
struct Location : Elements<E> {
  using T = Compute<E>;
  using Value = Place<T>;
  bool largest;
  PLAIT_DEVICE Location(Thread &t, const ReduceArgs &a)
      : Elements<E>(t, a), largest(a.mode == extreme_mode::LARGEST) {}
  PLAIT_DEVICE Value start() const { return {-1, T(0)}; }
  // Whether x comes before `best` where positions do not count; 0: they are equal.
  PLAIT_DEVICE int compare(T x, T best) const {
    const bool nan = x != x, best_nan = best != best;
    if (nan || best_nan) return int(nan) - int(best_nan);
    return largest ? int(x > best) - int(x < best) : int(x < best) - int(x > best);
  }
  PLAIT_DEVICE Value step(const Value &a, const Value &b) const {
    if (a.at < 0 || b.at < 0) return a.at < 0 ? b : a;
    const int first = compare(b.value, a.value);
    return first > 0 || (first == 0 && b.at < a.at) ? b : a;
  }
  // elements come in the order of their positions
  template <int N, int width>
  PLAIT_DEVICE void fold(Value &value, const E *x, int64_t first, int64_t step) const {
#pragma unroll
    for (int k = 0; k < N; k++) {
      const T y = widen(x[k]);
      const bool better = (largest ? y > value.value : y < value.value) || y != y;
      if (value.at < 0 || (better && value.value == value.value))
        value = {first + k / width * step + k % width, y};
    }
  }
  PLAIT_DEVICE void finish(Thread &t, const ReduceArgs &a, int64_t i, const Value &value) const {
    t.global<int64_t>(a.second).store(i, value.at);
    if (a.out) t.global<E>(a.out).store(i, narrow<E>(value.value));
  }
};

template <class T>
PLAIT_DEVICE void reduce_extreme(Block &t, const ReduceArgs &a) {
  reduce<Extreme<T>>(t, a);
}
template <class T>
PLAIT_DEVICE void reduce_location(Block &t, const ReduceArgs &a) {
  reduce<Location<T>>(t, a);
}
#endif
PLAIT_DEVICE_KERNEL(reduce_extreme, ReduceArgs, 256, ALL);
PLAIT_DEVICE_KERNEL(reduce_location, ReduceArgs, 256, ALL);

#if PLAIT_HOST
namespace {

uint64_t whole(const plait_call *c) { return all_dims(tensor(c, 0)->ndim); }
uint64_t reduced_dims(const plait_call *c) { return dims_mask(c, 1, tensor(c, 0)->ndim); }

plait_status extreme(const plait_call *c, uint64_t mask, int mode) {
  ReduceArgs a{};
  a.out = result(c)->data, a.mode = mode;
  return launch_reduction(c, reduce_extreme_kernel, tensor(c, 0), mask, a);
}
plait_status amax(plait_call *c) { return extreme(c, reduced_dims(c), extreme_mode::LARGEST); }
plait_status amin(plait_call *c) { return extreme(c, reduced_dims(c), extreme_mode::SMALLEST); }
plait_status max(plait_call *c) { return extreme(c, whole(c), extreme_mode::LARGEST); }
plait_status min(plait_call *c) { return extreme(c, whole(c), extreme_mode::SMALLEST); }

PLAIT_KERNEL("amax", amax);
PLAIT_KERNEL("amin", amin);
PLAIT_KERNEL("max", max);
PLAIT_KERNEL("min", min);

// Indices count in C order.
plait_status location(const plait_call *c, const DLTensor *values, const DLTensor *indices,
                      int mode) {
  ReduceArgs a{};
  a.out = values ? values->data : nullptr, a.second = indices->data, a.mode = mode;
  return launch_reduction(c, reduce_location_kernel, tensor(c, 0), reduced_dims(c), a, true);
}
plait_status argmax(plait_call *c) {
  return location(c, nullptr, result(c), extreme_mode::LARGEST);
}
plait_status argmin(plait_call *c) {
  return location(c, nullptr, result(c), extreme_mode::SMALLEST);
}
plait_status max_dim(plait_call *c) {
  return location(c, result(c), result(c, 1), extreme_mode::LARGEST);
}
plait_status min_dim(plait_call *c) {
  return location(c, result(c), result(c, 1), extreme_mode::SMALLEST);
}

PLAIT_KERNEL("argmax", argmax);
PLAIT_KERNEL("argmin", argmin);
PLAIT_KERNEL("max.dim", max_dim);
PLAIT_KERNEL("min.dim", min_dim);

}  // namespace
#endif
}  // namespace plait::cuda
