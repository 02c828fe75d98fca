// Tensors filled with random numbers: uniform and normal ones and their transformations, integers,
// and numbers that are 1 with a given probability.
#include "block/block.h"
#include "block/convert.h"
#include "block/philox.h"
#include "host/walk.h"

namespace plait::cuda {
namespace {

enum Distribution : int32_t { kUniform, kExponential, kCauchy, kNormal, kLogNormal };

struct RandomArgs {
  void *to;
  const void *chances;  // of bernoulli
  int64_t n;
  RandomStream stream;
  double first, second;  // parameters of the distribution
  int32_t distribution, is_dense;
  uint64_t below;        // of bernoulli_: the words below it give `one`
  uint64_t one[2];
  uint64_t low, range;   // of whole numbers
  int64_t largest;       // of geometric numbers
  double trials;         // 1 / log(1 - p) of them, else 0
  Walk<2> walk;          // of the result and of chances, in elements
  Fault fault;
};

#if PLAIT_KERNELS

// Calls f(words, first element) for each block of words, of which each makes `each` elements.
template <int each, class F>
PLAIT_DEVICE void each_block(Thread &t, const RandomArgs &a, F f) {
  const RandomStream s = stream_of_run(t, a.stream);
  const int64_t blocks = (a.n + each - 1) / each;
  for (int64_t b = t.index(); b < blocks; b += t.stride())
    f(philox(s.seed, s.offset + uint64_t(b), 0), b * each);
}

// Writes neighbouring elements, those that exist.
template <class T, int count>
PLAIT_DEVICE void write_elements(const Global<T> &to, const RandomArgs &a, int64_t first,
                                 const Vector<T, count> &v) {
  if (a.is_dense && first + count <= a.n) {
    to.template store_vector<count>(first, v);
    return;
  }
  for (int k = 0; k < count && first + k < a.n; k++) {
    int64_t offset[2];
    a.walk.seek(first + k, offset);
    to.store(offset[0], v.at[k]);
  }
}

template <class T>
constexpr int kMade = sizeof(T) == 8 ? 2 : 4;  // elements from a block of words

template <class T>
PLAIT_DEVICE T flat_number(const RandomArgs &a, const RandomWords &w, int i) {
  using V = Compute<T>;
  using namespace scalar;
  if (a.distribution == kExponential)
    return narrow<T>(V(a.first) * math::log(open_unit(w, i, V())));
  if (a.distribution == kCauchy) {
    const V angle = V(3.141592653589793) * (open_unit(w, i, V()) - V(0.5));
    return narrow<T>(scaled(V(a.first), math::tan<true>(angle), V(a.second)));
  }
  if constexpr (std::is_same_v<T, V>) {
    return scaled(V(a.first), unit(w, i, V()), V(a.second));
  } else {  // from so many bits that none is rounded up to the upper bound
    constexpr int bits = std::is_same_v<T, Half> ? 11 : 8;
    const float u = float(w.at[i] >> (32 - bits)) * (1.0f / float(1 << bits));
    return convert<T>(scaled(a.first, double(u), a.second));
  }
}

template <class T>
PLAIT_DEVICE void random_numbers(Thread &t, const RandomArgs &a) {
  const auto to = t.global<T>(a.to);
  each_block<kMade<T>>(t, a, [&](const RandomWords &w, int64_t first) {
    Vector<T, kMade<T>> v;
#pragma unroll
    for (int i = 0; i < kMade<T>; i++) v.at[i] = flat_number<T>(a, w, i);
    write_elements(to, a, first, v);
  });
}

// Box and Muller's transform: the first half of the numbers of a group of 32 blocks takes cosines
// with angles from the second half of the blocks, the second half sines.
template <class T>
PLAIT_DEVICE void random_pairs(Thread &t, const RandomArgs &a) {
  using V = Compute<T>;
  using namespace scalar;
  constexpr int made = kMade<T>, half = 16;
  const auto to = t.global<T>(a.to);
  const RandomStream s = stream_of_run(t, a.stream);
  const int64_t groups = (a.n + 2 * half * made - 1) / (2 * half * made);
  for (int64_t i = t.index(); i < groups * half; i += t.stride()) {
    const int64_t block = i / half * 2 * half + i % half;
    const RandomWords radii = philox(s.seed, s.offset + uint64_t(block), 0),
                      angles = philox(s.seed, s.offset + uint64_t(block + half), 0);
    Vector<T, made> cosines, sines;
#pragma unroll
    for (int k = 0; k < made; k++) {
      const bool is_log = a.distribution == kLogNormal;
      const V u = is_log ? open_unit(radii, k, V()) : V(1) - unit(radii, k, V());
      const V radius = V(a.second) * math::sqrt(V(-2) * math::log(u));
      const V angle = V(6.283185307179586) * unit(angles, k, V());
      const V x = scaled(V(a.first), radius, math::cos<true>(angle));
      const V y = scaled(V(a.first), radius, math::sin<true>(angle));
      cosines.at[k] = narrow<T>(is_log ? math::exp(x) : x);
      sines.at[k] = narrow<T>(is_log ? math::exp(y) : y);
    }
    write_elements(to, a, block * made, cosines);
    write_elements(to, a, (block + half) * made, sines);
  }
}

template <class T>
PLAIT_DEVICE void random_choices(Thread &t, const RandomArgs &a) {
  T one;
  memcpy(&one, a.one, sizeof one);
  const auto to = t.global<T>(a.to);
  each_block<4>(t, a, [&](const RandomWords &w, int64_t first) {
    for (int k = 0; k < 4 && first + k < a.n; k++) {
      int64_t offset[2] = {first + k, 0};
      if (!a.is_dense) a.walk.seek(first + k, offset);
      to.store(offset[0], w.at[k] < a.below ? one : T{});
    }
  });
}

template <class T>
PLAIT_DEVICE void random_chances(Thread &t, const RandomArgs &a) {
  const auto to = t.global<T>(a.to);
  const auto chances = t.global<const T>(a.chances);
  each_block<4>(t, a, [&](const RandomWords &w, int64_t first) {
    for (int k = 0; k < 4 && first + k < a.n; k++) {
      int64_t offset[2];
      a.walk.seek(first + k, offset);
      const double p = double(widen(chances.load(offset[1])));
      if (!(p >= 0 && p <= 1)) t.fail(a.fault, kBoundsFault, p, 0, 1);
      to.store(offset[0], narrow<T>(Compute<T>(w.at[k] < threshold(p))));
    }
  });
}

template <class T>
PLAIT_DEVICE void random_whole(Thread &t, const RandomArgs &a) {
  const auto to = t.global<T>(a.to);
  each_block<2>(t, a, [&](const RandomWords &w, int64_t first) {
    for (int k = 0; k < 2 && first + k < a.n; k++) {
      int64_t number;
      if (a.trials != 0) {
        const double trials = floor(log(open_unit(w, k, double())) * a.trials) + 1;
        number = trials < double(a.largest) ? int64_t(trials) : a.largest;
      } else {
        number = int64_t(a.low + below(w, k, a.range));
      }
      int64_t offset[2] = {first + k, 0};
      if (!a.is_dense) a.walk.seek(first + k, offset);
      if constexpr (std::is_integral_v<T>)
        to.store(offset[0], convert<T>(number));
      else
        to.store(offset[0], convert<T>(double(number)));
    }
  });
}
#endif

PLAIT_DEVICE_KERNEL(random_numbers, RandomArgs, 256, FLOATING);
PLAIT_DEVICE_KERNEL(random_pairs, RandomArgs, 256, FLOATING);
PLAIT_DEVICE_KERNEL(random_choices, RandomArgs, 256, SIZES);
PLAIT_DEVICE_KERNEL(random_chances, RandomArgs, 256, FLOATING);
PLAIT_DEVICE_KERNEL(random_whole, RandomArgs, 256, ALL);

}  // namespace
}  // namespace plait::cuda

#if PLAIT_HOST
#include <math.h>

#include "host/random.h"

namespace plait::cuda {
namespace {

// Runs a kernel of which a block of words makes `each` elements.
plait_status fill_random(const plait_call *c, const DeviceKernel &kernel, int instance,
                         const DLTensor *to, int each, RandomArgs *a,
                         const DLTensor *chances = nullptr) {
  a->n = numel(to), a->to = to->data;
  PLAIT_TRY(reserve_stream(c, blocks_of_groups(a->n, each), &a->stream));
  if (a->n == 0) return PLAIT_OK;
  Plan p;
  p.add(to, 1);
  if (chances)
    p.add(chances, 1);
  else
    p.add_constant(nullptr);
  p.finish(false);
  a->is_dense = is_contiguous(to) && reinterpret_cast<uintptr_t>(to->data) % 16 == 0;
  if (!make_walk(p, &a->walk)) return too_many_dimensions(c);
  return launch(c, kernel, instance, *a, blocks_for(c, ceil_div(a->n, each), 256), 256);
}

int made_of_block(Kind k) { return k == F64 ? 2 : 4; }

plait_status fill_floating(const plait_call *c, const DLTensor *to, Distribution distribution,
                           double first, double second) {
  RandomArgs a{};
  a.distribution = distribution, a.first = first, a.second = second;
  const Kind k = kind(to->dtype);
  const bool is_paired = distribution == kNormal || distribution == kLogNormal;
  return fill_random(c, is_paired ? random_pairs_kernel : random_numbers_kernel, k, to,
                     made_of_block(k), &a);
}
// Fills floating-point tensors, and both parts of complex ones, with numbers of a distribution.
plait_status fill_parts(const plait_call *c, const DLTensor *to, Distribution distribution,
                        double first, double second) {
  if (!is_complex_kind(kind(to->dtype))) return fill_floating(c, to, distribution, first, second);
  const Parts parts(to);
  return fill_floating(c, &parts.t, distribution, first, second);
}

plait_status uniform(plait_call *c) {  // uniform_(self, low, high, *, generator)
  const double low = real(c, 1), high = real(c, 2, 1);
  return fill_parts(c, tensor(c, 0), kUniform, low, high - low);
}
plait_status normal(plait_call *c) {  // normal_(self, mean, std, *, generator)
  const DLTensor *self = tensor(c, 0);
  // each part of a complex number has half the variance
  const double part = is_complex_kind(kind(self->dtype)) ? 0.70710678118654752 : 1;
  return fill_parts(c, self, kNormal, real(c, 1), real(c, 2, 1) * part);
}
plait_status exponential(plait_call *c) {  // exponential_(self, lambd, *, generator)
  return fill_floating(c, tensor(c, 0), kExponential, -1 / real(c, 1, 1), 0);
}
plait_status cauchy(plait_call *c) {  // cauchy_(self, median, sigma, *, generator)
  return fill_floating(c, tensor(c, 0), kCauchy, real(c, 1), real(c, 2, 1));
}
plait_status log_normal(plait_call *c) {  // log_normal_(self, mean, std, *, generator)
  return fill_floating(c, tensor(c, 0), kLogNormal, real(c, 1, 1), real(c, 2, 2));
}

plait_status bernoulli_fill(plait_call *c) {  // bernoulli_(self, p, *, generator)
  const DLTensor *self = tensor(c, 0);
  RandomArgs a{};
  a.below = threshold(real(c, 1, 0.5));
  plait_value one{PLAIT_INT, 0, {0}};
  one.u.i = 1;
  store_number(kind(self->dtype), one, a.one);
  return fill_random(c, random_choices_kernel, instance_of_size(self->dtype.bits / 8), self, 4, &a);
}
plait_status bernoulli(plait_call *c) {  // bernoulli(self, *, generator): of probabilities
  Operand chances;
  PLAIT_TRY(chances.take(c, tensor(c, 0)));
  RandomArgs a{};
  a.chances = chances.data(), a.fault = fault_of(c, 0);
  return fill_random(c, random_chances_kernel, kind(result(c)->dtype), result(c), 4, &a,
                     chances.tensor());
}

plait_status fill_whole(const plait_call *c, const DLTensor *to, RandomArgs *a) {
  return fill_random(c, random_whole_kernel, kind(to->dtype), to, 2, a);
}
int64_t largest(Kind k) {  // up to this all whole numbers are exact
  switch (k) {
    case Bool: return 1;
    case F16: return 1 << 11;
    case BF16: return 1 << 8;
    case F32: return 1 << 24;
    case F64: return int64_t(1) << 53;
    case U64:
    case I64: return INT64_MAX;
    default: {
      const int bits = size_of(k) * 8 - (k == I8 || k == I16 || k == I32);
      return (int64_t(1) << bits) - 1;
    }
  }
}
plait_status geometric(plait_call *c) {  // geometric_(self, p, *, generator)
  const DLTensor *self = tensor(c, 0);
  const Kind k = kind(self->dtype);
  RandomArgs a{};
  a.trials = 1 / log1p(-real(c, 1));
  a.largest = k >= F32 ? INT64_MAX : largest(k);
  return fill_whole(c, self, &a);
}
plait_status random_from(plait_call *c) {  // random_.from(self, low, high, *, generator)
  const DLTensor *self = tensor(c, 0);
  const bool is_open = c->in[2].tag == PLAIT_NONE;  // up to the largest number of the dtype
  RandomArgs a{};
  a.low = uint64_t(integer(c, 1));
  a.range = (is_open ? uint64_t(largest(kind(self->dtype))) + 1 : uint64_t(integer(c, 2))) - a.low;
  return fill_whole(c, self, &a);
}
plait_status randint(plait_call *c) {  // randint(low, high, size, ...): in [low, high)
  RandomArgs a{};
  a.low = uint64_t(integer(c, 0)), a.range = uint64_t(integer(c, 1)) - a.low;
  return fill_whole(c, result(c), &a);
}

PLAIT_KERNEL("uniform_", uniform);
PLAIT_KERNEL("normal_", normal);
PLAIT_KERNEL("exponential_", exponential);
PLAIT_KERNEL("cauchy_", cauchy);
PLAIT_KERNEL("log_normal_", log_normal);
PLAIT_KERNEL("bernoulli_", bernoulli_fill);
PLAIT_KERNEL("bernoulli", bernoulli);
PLAIT_KERNEL("geometric_", geometric);
PLAIT_KERNEL("random_.from", random_from);
PLAIT_KERNEL("randint", randint);

}  // namespace
}  // namespace plait::cuda
#endif
