// Reductions over ranks, in the order of the ranks.
#ifndef PLAIT_COLLECTIVES_REDUCE_HPP
#define PLAIT_COLLECTIVES_REDUCE_HPP
#include <algorithm>
#include <complex>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "../half.h"
#include "../plait.hpp"

namespace plait::collectives {

// Ranks in order whose elements are added to the result of the ranks before.
struct Part {
  const char *before;     // accumulators of these, or nullptr if there are none
  const char *const *in;  // of each rank of the part
  uint32_t count;         // of them
  char *out;              // accumulators, or elements behind the last part
  bool last;
  uint32_t ranks;  // of all parts, by which a mean divides
};

// Bytes of an accumulator: halves are summed in float32.
inline uint64_t accumulator_bytes(DLDataType d) {
  const bool is_half = (d.code == kDLFloat && d.bits == 16) || d.code == kDLBfloat;
  return is_half ? sizeof(float) : uint64_t(itemsize(d));
}

namespace reducing {

constexpr uint64_t tile = 512;  // elements whose accumulators stay in the first cache

// How elements are read into accumulators and written back.

template <class T>
struct Plain {
  using Stored = T;
  using Wide = T;
  static Wide load(Stored x) { return x; }
  static Stored store(Wide x) { return x; }
};

struct BFloat {
  using Stored = uint16_t;
  using Wide = float;
  static float load(uint16_t x) { return plait_bfloat16_to_float(x); }
  static uint16_t store(float f) { return plait_bfloat16_of_float(f); }
};

struct Half {
  using Stored = uint16_t;
  using Wide = float;
  static float load(uint16_t x) { return plait_float16_to_float(x); }
  static uint16_t store(float f) { return plait_float16_of_float(f); }
};

struct Truth {  // bool: sum and max are "or", product and min are "and"
  using Stored = uint8_t;
  using Wide = uint8_t;
  static uint8_t load(uint8_t x) { return x != 0; }
  static uint8_t store(uint8_t x) { return x != 0; }
};

// Operations.

template <class T>
using Wrapping = std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                    std::common_type<T>>;  // integers wrap

template <class T>
struct Sum {
  static T of(T a, T b) {
    using U = typename Wrapping<T>::type;
    return T(U(a) + U(b));
  }
};
template <class T>
struct Product {
  static T of(T a, T b) {
    using U = typename Wrapping<T>::type;
    if constexpr (std::is_integral_v<T>)
      return T(uint64_t(U(a)) * uint64_t(U(b)));  // no promotion to a signed int
    else
      return U(a) * U(b);
  }
};
template <class T>
struct Min {  // a NaN stays
  static T of(T a, T b) { return b < a || b != b ? b : a; }
};
template <class T>
struct Max {
  static T of(T a, T b) { return a < b || b != b ? b : a; }
};

template <class T>
struct And {
  static T of(T a, T b) { return T(a & b); }
};
template <class T>
struct Or {
  static T of(T a, T b) { return T(a | b); }
};
template <class T>
struct Xor {
  static T of(T a, T b) { return T(a ^ b); }
};

template <class E, class Op>
void run(const Part &p, uint64_t n, bool mean) {
  using Wide = typename E::Wide;
  using Stored = typename E::Stored;
  Wide sum[tile];
  for (uint64_t at = 0; at < n; at += tile) {
    const uint64_t m = std::min(tile, n - at);
    uint32_t r = 0;
    if (p.before) {
      std::memcpy(sum, p.before + at * sizeof(Wide), m * sizeof(Wide));
    } else {
      const auto *first = reinterpret_cast<const Stored *>(p.in[r++]) + at;
      for (uint64_t i = 0; i < m; i++) sum[i] = E::load(first[i]);
    }
    for (; r < p.count; r++) {
      const auto *x = reinterpret_cast<const Stored *>(p.in[r]) + at;
      for (uint64_t i = 0; i < m; i++) sum[i] = Op::of(sum[i], E::load(x[i]));
    }
    if (!p.last) {
      std::memcpy(p.out + at * sizeof(Wide), sum, m * sizeof(Wide));
      continue;
    }
    if constexpr (!std::is_integral_v<Wide>)
      if (mean)
        for (uint64_t i = 0; i < m; i++) sum[i] = sum[i] / Wide(float(p.ranks));
    auto *to = reinterpret_cast<Stored *>(p.out) + at;
    for (uint64_t i = 0; i < m; i++) to[i] = E::store(sum[i]);
  }
}

template <class E>
bool ordered(uint32_t reduction, const Part &p, uint64_t n) {
  using Wide = typename E::Wide;
  if (reduction == PLAIT_REDUCE_MIN) return run<E, Min<Wide>>(p, n, false), true;
  if (reduction == PLAIT_REDUCE_MAX) return run<E, Max<Wide>>(p, n, false), true;
  return false;
}

template <class E>
bool arithmetic(uint32_t reduction, const Part &p, uint64_t n) {
  using Wide = typename E::Wide;
  switch (reduction) {
    case PLAIT_REDUCE_SUM: return run<E, Sum<Wide>>(p, n, false), true;
    case PLAIT_REDUCE_AVERAGE:
      if (std::is_integral_v<Wide>) return false;
      return run<E, Sum<Wide>>(p, n, true), true;
    case PLAIT_REDUCE_PRODUCT: return run<E, Product<Wide>>(p, n, false), true;
    default: return false;
  }
}

template <class E>
bool bitwise(uint32_t reduction, const Part &p, uint64_t n) {
  using Wide = typename E::Wide;
  if constexpr (std::is_integral_v<Wide>) {
    if (reduction == PLAIT_REDUCE_AND) return run<E, And<Wide>>(p, n, false), true;
    if (reduction == PLAIT_REDUCE_OR) return run<E, Or<Wide>>(p, n, false), true;
    if (reduction == PLAIT_REDUCE_XOR) return run<E, Xor<Wide>>(p, n, false), true;
  }
  return false;
}

template <class E>
bool real(uint32_t reduction, const Part &p, uint64_t n) {
  return arithmetic<E>(reduction, p, n) || ordered<E>(reduction, p, n) ||
         bitwise<E>(reduction, p, n);
}

bool logical(uint32_t reduction, const Part &p, uint64_t n) {
  if (reduction == PLAIT_REDUCE_AVERAGE) return false;
  if (bitwise<Truth>(reduction, p, n)) return true;
  const bool any = reduction == PLAIT_REDUCE_SUM || reduction == PLAIT_REDUCE_MAX;
  return ordered<Truth>(any ? PLAIT_REDUCE_MAX : PLAIT_REDUCE_MIN, p, n);
}

}  // namespace reducing

// One of the parts of a reduction; false if the dtype does not have the operation. An input may be
// the output of the last part.
inline bool reduce_part(DLDataType d, uint32_t reduction, const Part &p, uint64_t n) {
  using namespace reducing;
  switch (key(d)) {
    case key(dtype::bool_): return logical(reduction, p, n);
    case key(dtype::uint8): return real<Plain<uint8_t>>(reduction, p, n);
    case key(dtype::uint16): return real<Plain<uint16_t>>(reduction, p, n);
    case key(dtype::uint32): return real<Plain<uint32_t>>(reduction, p, n);
    case key(dtype::uint64): return real<Plain<uint64_t>>(reduction, p, n);
    case key(dtype::int8): return real<Plain<int8_t>>(reduction, p, n);
    case key(dtype::int16): return real<Plain<int16_t>>(reduction, p, n);
    case key(dtype::int32): return real<Plain<int32_t>>(reduction, p, n);
    case key(dtype::int64): return real<Plain<int64_t>>(reduction, p, n);
    case key(dtype::float16): return real<Half>(reduction, p, n);
    case key(dtype::bfloat16): return real<BFloat>(reduction, p, n);
    case key(dtype::float32): return real<Plain<float>>(reduction, p, n);
    case key(dtype::float64): return real<Plain<double>>(reduction, p, n);
    case key(dtype::complex64): return arithmetic<Plain<std::complex<float>>>(reduction, p, n);
    case key(dtype::complex128): return arithmetic<Plain<std::complex<double>>>(reduction, p, n);
    default: return false;
  }
}

// out[i] = in[0][i] op in[1][i] op ...; false if the dtype does not have the operation. An input
// may be the output.
inline bool reduce(DLDataType d, uint32_t reduction, const char *const *in, uint32_t ranks,
                   char *out, uint64_t n) {
  return reduce_part(d, reduction, {nullptr, in, ranks, out, true, ranks}, n);
}

}  // namespace plait::collectives
#endif  // PLAIT_COLLECTIVES_REDUCE_HPP
