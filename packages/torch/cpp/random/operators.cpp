// PyTorch's rules for random numbers of the CPU: which words of the generator an element takes, and
// what it makes of them. Each was found by comparing results with those of PyTorch 2.13.
#include <cmath>
#include <limits>
#include <vector>

#include "random/draws.hpp"
#include "random/normal_lanes.hpp"

namespace plait::pytorch {

std::vector<RandomOperator> &random_operators() {
  static std::vector<RandomOperator> all;
  return all;
}

namespace {

// Sets each element, in the order of memory, to what `f()` returns.
template <class T, class F>
plait_status set_each(const DLTensor &t, const F &f) {
  T *to = data<T>(t);
  if (is_contiguous(t)) {
    for (int64_t i = 0, n = numel(t); i < n; i++) to[i] = T(f());
  } else {
    Walk(t).each([&](const int64_t *at) { to[at[0]] = T(f()); });
  }
  return PLAIT_OK;
}

// The parts of complex numbers as an array of twice as many real ones.
struct Parts {
  int64_t shape[PLAIT_MAX_DIMS + 1], strides[PLAIT_MAX_DIMS + 1];
  DLTensor t;
  explicit Parts(const DLTensor &z) : t(z) {
    for (int d = 0; d < z.ndim; d++) shape[d] = z.shape[d], strides[d] = 2 * z.strides[d];
    shape[z.ndim] = 2, strides[z.ndim] = 1;
    t.ndim = z.ndim + 1;
    t.dtype = DLDataType{kDLFloat, uint8_t(z.dtype.bits / 2), 1};
    t.shape = shape, t.strides = strides;
  }
  Parts(const Parts &) = delete;
  Parts &operator=(const Parts &) = delete;
};

// Uniform and normal numbers.

plait_status fill_uniform(MersenneTwister &mt, const DLTensor &t, double low, double high) {
  return for_floating(t.dtype, [&](auto kind) {
    using T = decltype(kind);
    using C = typename Computes<T>::type;
    const C from = C(low), width = C(high) - from, end = C(T(C(high)));
    return set_each<T>(t, [&] {
      const T x = T(std::fma(mt.unit(C()), width, from));
      return C(x) == end ? T(from) : x;  // it was rounded up
    });
  });
}

plait_status uniform(plait_call *c) {  // uniform_(self, low, high, *, generator)
  return drawing(c, [&](MersenneTwister &mt) {
    const DLTensor &self = target(c);
    const double low = real(c, 1), high = real(c, 2, 1);
    if (self.dtype.code == kDLComplex) return fill_uniform(mt, Parts(self).t, low, high);
    return fill_uniform(mt, self, low, high);
  });
}
PLAIT_DRAWS("uniform_", uniform);

// Where the input is 0 or below, in the order of its indices.
plait_status rrelu_slopes(plait_call *c) {  // rrelu_slopes(self, lower, upper, *, generator)
  const DLTensor &self = target(c), &out = c->out[0].u.t->dl;
  return for_floating(self.dtype, [&](auto kind) {
    using T = decltype(kind);
    using C = typename Computes<T>::type;
    const double lower = C(T(C(real(c, 1)))), upper = C(T(C(real(c, 2))));
    return drawing(c, [&](MersenneTwister &mt) {
      Walk(InOrder(self).t, self, out).each([&](const int64_t *at) {
        const bool is_drawn = data<T>(self)[at[1]] <= 0;
        data<T>(out)[at[2]] = T(float(1));
        if (is_drawn) data<T>(out)[at[2]] = T(C(mt.unit(double()) * (upper - lower) + lower));
      });
      return plait_status(PLAIT_OK);
    });
  });
}
PLAIT_DRAWS("rrelu_slopes", rrelu_slopes);

template <class C>
void normal_of_16(C *u, C mean, C deviation) {
  for (int i = 0; i < 8; i++) {
    const C radius = std::sqrt(C(-2) * std::log(C(1) - u[i]));
    const C angle = C(2) * C(3.14159265358979323846) * u[i + 8];
    u[i] = std::fma(radius * std::cos(angle), deviation, mean);
    u[i + 8] = std::fma(radius * std::sin(angle), deviation, mean);
  }
}

void of_16(double *u, double mean, double deviation) { normal_of_16(u, mean, deviation); }
void of_16(float *u, float mean, float deviation) {
  static const bool has_lanes = has_normal_lanes();
  (has_lanes ? normal_16_lanes : normal_16)(u, mean, deviation);
}

// Sixteen or more elements, one behind the other. The last group may overlap the one before it.
template <class T>
void fill_groups(MersenneTwister &mt, T *to, int64_t n, double mean, double deviation) {
  for (int64_t i = 0; i < n; i++) to[i] = mt.unit(T());
  for (int64_t i = 0; i + 16 <= n; i += 16) of_16(to + i, T(mean), T(deviation));
  if (n % 16 == 0) return;
  for (int64_t i = n - 16; i < n; i++) to[i] = mt.unit(T());
  of_16(to + n - 16, T(mean), T(deviation));
}
template <class Half>
void fill_half_groups(MersenneTwister &mt, Half *to, int64_t n, double mean, double deviation) {
  const auto group = [&](int64_t first) {
    float u[16];
    for (float &each : u) each = mt.unit(float());
    of_16(u, float(mean), float(deviation));
    for (int i = 0; i < 16; i++) to[first + i] = Half(u[i]);
  };
  for (int64_t i = 0; i + 16 <= n; i += 16) group(i);
  if (n % 16) group(n - 16);
}
void fill_groups(MersenneTwister &mt, Float16 *to, int64_t n, double mean, double deviation) {
  fill_half_groups(mt, to, n, mean, deviation);
}
void fill_groups(MersenneTwister &mt, BFloat16 *to, int64_t n, double mean, double deviation) {
  fill_half_groups(mt, to, n, mean, deviation);
}

plait_status fill_normal(MersenneTwister &mt, const DLTensor &t, double mean, double deviation) {
  return for_floating(t.dtype, [&](auto kind) {
    using T = decltype(kind);
    using C = typename Computes<T>::type;
    const int64_t n = numel(t);
    if (n >= 16 && is_contiguous(t)) {
      fill_groups(mt, data<T>(t), n, mean, deviation);
      return plait_status(PLAIT_OK);
    }
    return set_each<T>(t, [&] { return T(C(std::fma(mt.normal(), deviation, mean))); });
  });
}

plait_status normal(plait_call *c) {  // normal_(self, mean, std, *, generator)
  return drawing(c, [&](MersenneTwister &mt) {
    const DLTensor &self = target(c);
    const double mean = real(c, 1), deviation = real(c, 2, 1);
    if (self.dtype.code == kDLComplex)  // each part has half the variance
      return fill_normal(mt, Parts(self).t, mean, deviation / std::sqrt(2.0));
    return fill_normal(mt, self, mean, deviation);
  });
}
PLAIT_DRAWS("normal_", normal);

// Distributions by transformation. They compute in double.

// Sets each element to `f(mt)`, a double.
template <class F>
plait_status transformed(plait_call *c, const F &f) {
  return drawing(c, [&](MersenneTwister &mt) {
    return for_real(target(c).dtype, [&](auto kind) {
      using T = decltype(kind);
      return set_each<T>(target(c), [&] {
        if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>)
          return T(float(f(mt)));
        else
          return T(f(mt));
      });
    });
  });
}

plait_status log_normal(plait_call *c) {  // log_normal_(self, mean, std, *, generator)
  const double mean = real(c, 1, 1), deviation = real(c, 2, 2);
  return transformed(
      c, [=](MersenneTwister &mt) { return std::exp(std::fma(mt.normal(), deviation, mean)); });
}
PLAIT_DRAWS("log_normal_", log_normal);

double exponential_number(MersenneTwister &mt, double rate) {
  return -1 / rate * std::log1p(-mt.unit(double()));
}
plait_status exponential(plait_call *c) {  // exponential_(self, lambd, *, generator)
  const double rate = real(c, 1, 1);
  return transformed(c, [=](MersenneTwister &mt) { return exponential_number(mt, rate); });
}
PLAIT_DRAWS("exponential_", exponential);

plait_status cauchy(plait_call *c) {  // cauchy_(self, median, sigma, *, generator)
  const double median = real(c, 1), sigma = real(c, 2, 1);
  constexpr double least = std::numeric_limits<double>::epsilon();
  return transformed(c, [=](MersenneTwister &mt) {
    const double u = std::min(std::max(mt.unit(double()), least), 1 - least);
    return std::fma(sigma, std::tan(3.14159265358979323846 * (u - 0.5)), median);
  });
}
PLAIT_DRAWS("cauchy_", cauchy);

plait_status geometric(plait_call *c) {  // geometric_(self, p, *, generator)
  const double p = real(c, 1);
  return transformed(c, [=](MersenneTwister &mt) {
    return std::ceil(std::log(mt.unit(double())) / std::log1p(-p));
  });
}
PLAIT_DRAWS("geometric_", geometric);

// Bernoulli.

plait_status bernoulli_fill(plait_call *c) {  // bernoulli_(self, p, *, generator)
  const double p = real(c, 1, 0.5);
  return transformed(c, [=](MersenneTwister &mt) { return double(mt.unit(double()) < p); });
}
PLAIT_DRAWS("bernoulli_", bernoulli_fill);

plait_status bernoulli(plait_call *c) {  // bernoulli(self, *, generator)
  const DLTensor &p = target(c), &out = c->out[0].u.t->dl;
  return for_floating(p.dtype, [&](auto kind) {
    using T = decltype(kind);
    using C = typename Computes<T>::type;
    bool are_probabilities = true;
    Walk(p).each([&](const int64_t *at) {
      const C x = C(data<T>(p)[at[0]]);
      are_probabilities &= x >= 0 && x <= 1;
    });
    if (!are_probabilities)
      return plait_status(PLAIT_DECLINE);  // the next kernel says what is wrong
    return drawing(c, [&](MersenneTwister &mt) {
      Walk(InOrder(out).t, out, p).each([&](const int64_t *at) {
        data<T>(out)[at[1]] = T(C(mt.unit(C()) < C(data<T>(p)[at[2]])));
      });
      return plait_status(PLAIT_OK);
    });
  });
}
PLAIT_DRAWS("bernoulli", bernoulli);

plait_status bernoulli_of(plait_call *c) {  // bernoulli.p(self, p, *, generator)
  const DLTensor &out = c->out[0].u.t->dl;
  const double p = real(c, 1);
  return drawing(c, [&](MersenneTwister &mt) {
    return for_real(out.dtype, [&](auto kind) {
      using T = decltype(kind);
      Walk(InOrder(out).t, out).each([&](const int64_t *at) {
        data<T>(out)[at[1]] = T(float(mt.unit(double()) < p));
      });
      return plait_status(PLAIT_OK);
    });
  });
}
PLAIT_DRAWS("bernoulli.p", bernoulli_of);

plait_status bernoulli_each(plait_call *c) {  // bernoulli_.Tensor(self, p, *, generator)
  const DLTensor &self = target(c), &p = c->in[1].u.t->dl;
  int64_t strides[PLAIT_MAX_DIMS] = {};
  if (p.ndim > self.ndim) return PLAIT_DECLINE;
  for (int d = 0; d < p.ndim; d++) {
    const int at = self.ndim - p.ndim + d;
    if (p.shape[d] != 1 && p.shape[d] != self.shape[at]) return PLAIT_DECLINE;
    strides[at] = p.shape[d] == 1 ? 0 : p.strides[d];
  }
  DLTensor each = self;  // p, broadcast
  each.data = p.data, each.dtype = p.dtype, each.strides = strides;
  return for_floating(p.dtype, [&](auto kind) {
    using P = decltype(kind);
    using C = typename Computes<P>::type;
    bool are_probabilities = true;
    const Walk walk(self, each);
    walk.each([&](const int64_t *at) {
      const C x = C(data<P>(each)[at[1]]);
      are_probabilities &= x >= 0 && x <= 1;
    });
    if (!are_probabilities) return plait_status(PLAIT_DECLINE);
    return for_real(self.dtype, [&](auto result) {
      using T = decltype(result);
      return drawing(c, [&](MersenneTwister &mt) {
        walk.each([&](const int64_t *at) {
          data<T>(self)[at[0]] = T(float(mt.unit(C()) < C(data<P>(each)[at[1]])));
        });
        return plait_status(PLAIT_OK);
      });
    });
  });
}
PLAIT_DRAWS("bernoulli_.Tensor", bernoulli_each);

// Whether the strides of a tensor are those of dense memory, in any order of its dimensions.
bool is_dense(const DLTensor &t) {
  int64_t last = 0;
  for (int i = 0; i < t.ndim; i++) last += (t.shape[i] - 1) * t.strides[i];
  return numel(t) == 0 || last == numel(t) - 1;
}

plait_status dropout(plait_call *c) {  // native_dropout(input, p, *, generator) -> (output, mask)
  const DLTensor &x = target(c), &y = c->out[0].u.t->dl, &kept = c->out[1].u.t->dl;
  const double p = real(c, 1);
  return for_floating(x.dtype, [&](auto kind) {
    using T = decltype(kind);
    using C = typename Computes<T>::type;
    const C scale = p < 1 ? C(T(C(1) / C(1 - p))) : C(0);
    return drawing(c, [&](MersenneTwister &mt) {
      const auto one = [&](const T &from, T &to, uint8_t &is_kept) {
        is_kept = p < 1 && mt.unit(double()) < 1 - p;
        to = T(C(from) * (is_kept ? scale : C(0)));
      };
      if (is_contiguous(x) && is_contiguous(y) && is_contiguous(kept)) {
        for (int64_t i = 0, n = numel(x); i < n; i++)
          one(data<T>(x)[i], data<T>(y)[i], data<uint8_t>(kept)[i]);
        return plait_status(PLAIT_OK);
      }
      // the order is that of a new tensor like x
      const InOrder logical(x);
      Walk(is_dense(x) ? x : logical.t, x, y, kept).each([&](const int64_t *at) {
        one(data<T>(x)[at[1]], data<T>(y)[at[2]], data<uint8_t>(kept)[at[3]]);
      });
      return plait_status(PLAIT_OK);
    });
  });
}
PLAIT_DRAWS("native_dropout", dropout);

// Whole numbers.

uint64_t largest(DLDataType d) {  // up to this all whole numbers are exact
  switch (key(d)) {
    case key(dtype::bool_): return 1;
    case key(dtype::float16): return 1 << 11;
    case key(dtype::bfloat16): return 1 << 8;
    case key(dtype::float32): return 1 << 24;
    case key(dtype::float64): return uint64_t(1) << 53;
    case key(dtype::uint64): return INT64_MAX;
    default: return (uint64_t(1) << (d.bits - (d.code == kDLInt))) - 1;
  }
}

template <class T, class Word>
T whole(Word w) {
  if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>)
    return T(float(w));
  else
    return T(w);
}

constexpr uint64_t least_for_pairs = uint64_t(1) << 28;  // larger ranges take two words

plait_status fill_range(MersenneTwister &mt, const DLTensor &t, int64_t low, uint64_t range) {
  return for_real(t.dtype, [&](auto kind) {
    using T = decltype(kind);
    if (range == 0)  // all 64 bits
      return set_each<T>(t, [&] { return whole<T>(int64_t(mt.next_pair())); });
    if (range >= least_for_pairs)
      return set_each<T>(t,
                         [&] { return whole<T>(int64_t(uint64_t(low) + mt.next_pair() % range)); });
    return set_each<T>(t, [&] { return whole<T>(low + int64_t(mt.next() % range)); });
  });
}

// The bits of an integer behind the leading one.
int exponent_of(uint64_t x) {
  int n = 0;
  while (x >>= 1) n++;
  return n;
}

// Moves the ends of a range [low, end) to numbers that a floating dtype can hold, if rounding would
// leave the range.
void round_inwards(DLDataType dtype, int64_t *low, int64_t *end) {
  for_floating(dtype, [&](auto kind) {
    using T = decltype(kind);
    using C = typename Computes<T>::type;
    const auto rounded = [](int64_t x) { return int64_t(C(T(C(x)))); };
    const int digits = exponent_of(largest(dtype));  // of the significand
    const auto gap = [digits](int64_t x) {
      const uint64_t size = x < 0 ? 0 - uint64_t(x) : uint64_t(x);
      return int64_t(1) << std::max(exponent_of(size) - digits + 1, 0);
    };
    if (rounded(*low + 1) < *low) *low = rounded(*low + 1) + gap(*low + 1);
    if (rounded(*end - 1) >= *end) *end = rounded(*end - 1) - gap(*end - 1);
    return plait_status(PLAIT_OK);
  });
}

plait_status random_from(plait_call *c) {  // random_.from(self, low, high, *, generator)
  const DLTensor &self = target(c);
  const int64_t low = c->in[1].u.i;
  const bool open = c->in[2].tag == PLAIT_NONE;  // up to the largest number of the dtype
  if (open)
    return drawing(c, [&](MersenneTwister &mt) {
      return fill_range(mt, self, low, largest(self.dtype) + 1 - uint64_t(low));
    });
  int64_t first = low, last = c->in[2].u.i;
  round_inwards(self.dtype, &first, &last);
  return drawing(c, [&](MersenneTwister &mt) {
    return fill_range(mt, self, first, uint64_t(last) - uint64_t(first));
  });
}
PLAIT_DRAWS("random_.from", random_from);

plait_status random_all(plait_call *c) {  // random_(self, *, generator): 0 to the largest number
  const DLTensor &self = target(c);
  const uint64_t range = largest(self.dtype) + 1;
  const bool pairs = self.dtype.bits == 64;
  return drawing(c, [&](MersenneTwister &mt) {
    return for_real(self.dtype, [&](auto kind) {
      using T = decltype(kind);
      return set_each<T>(self, [&] {
        return whole<T>(int64_t((pairs ? mt.next_pair() : uint64_t(mt.next())) % range));
      });
    });
  });
}
PLAIT_DRAWS("random_", random_all);

plait_status randint(plait_call *c) {  // randint(low, high, size, ...)
  const int64_t low = c->in[0].u.i;
  const uint64_t range = uint64_t(c->in[1].u.i) - uint64_t(low);
  return drawing(
      c, [&](MersenneTwister &mt) { return fill_range(mt, c->out[0].u.t->dl, low, range); });
}
PLAIT_DRAWS("randint", randint);

plait_status randperm(plait_call *c) {  // randperm(n, ...): Fisher and Yates' shuffle
  const DLTensor &out = c->out[0].u.t->dl;
  const int64_t n = numel(out);
  return drawing(c, [&](MersenneTwister &mt) {
    return for_real(out.dtype, [&](auto kind) {
      using T = decltype(kind);
      T *p = data<T>(out);
      const int64_t stride = out.ndim && n > 1 ? out.strides[0] : 1;
      for (int64_t i = 0; i < n; i++) p[i * stride] = whole<T>(i);
      const bool pairs = uint64_t(n) >= UINT32_MAX / 20;
      for (int64_t i = 0; i < n - 1; i++) {
        const uint64_t word = pairs ? mt.next_pair() : mt.next();
        std::swap(p[i * stride], p[(i + int64_t(word % uint64_t(n - i))) * stride]);
      }
      return plait_status(PLAIT_OK);
    });
  });
}
PLAIT_DRAWS("randperm", randperm);

// multinomial

template <class T>
bool are_weights(const T *weight, int64_t n, int64_t count, bool again) {
  using C = typename Computes<T>::type;
  C total = 0;
  int64_t possible = 0;
  for (int64_t i = 0; i < n; i++) {
    const C w = C(weight[i]);
    if (!(w >= 0 && w < std::numeric_limits<C>::infinity())) return false;
    total += w;
    possible += w > 0;
  }
  return total > 0 && (again || possible >= count);
}

// With replacement: the first category whose sum of weights is not below a uniform number.
template <class T>
void draw_again(MersenneTwister &mt, const T *weight, int64_t n, int64_t count,
                typename Computes<T>::type *sums, int64_t *to) {
  typename Computes<T>::type total = 0;
  for (int64_t i = 0; i < n; i++) sums[i] = total += weight[i];
  for (int64_t i = 0; i < n; i++) sums[i] /= total;
  sums[n - 1] = 1;
  for (int64_t k = 0; k < count; k++)
    to[k] = std::lower_bound(sums, sums + n, mt.unit(double())) - sums;
}

// Without: the largest quotients of the weights and exponential numbers, the largest one first.
template <class T>
void draw_distinct(const T *quotient, int64_t n, int64_t count, std::vector<int64_t> &order,
                   int64_t *to) {
  using C = typename Computes<T>::type;
  for (int64_t i = 0; i < n; i++) order[size_t(i)] = i;
  std::partial_sort(order.begin(), order.begin() + count, order.end(), [&](int64_t a, int64_t b) {
    const C x = C(quotient[a]), y = C(quotient[b]);
    return x > y || (x == y && a < b);
  });
  std::copy(order.begin(), order.begin() + count, to);
}

plait_status multinomial(plait_call *c) {  // multinomial(self, num_samples, replacement, ...)
  const DLTensor &self = target(c), &out = c->out[0].u.t->dl;
  const int64_t n = self.shape[self.ndim - 1], rows = self.ndim == 2 ? self.shape[0] : 1;
  const int64_t count = out.shape[out.ndim - 1];
  const bool again = c->in[2].u.i != 0;
  if (count == 0 || rows == 0 || !is_contiguous(self)) return PLAIT_DECLINE;
  return for_floating(self.dtype, [&](auto kind) {
    using T = decltype(kind);
    using C = typename Computes<T>::type;
    const T *weight = data<T>(self);
    auto *to = data<int64_t>(out);
    for (int64_t r = 0; r < rows; r++)  // the next kernel says what is wrong
      if (!are_weights(weight + r * n, n, count, again)) return plait_status(PLAIT_DECLINE);
    return drawing(c, [&](MersenneTwister &mt) {
      if (again && count > 1) {
        std::vector<C> sums(static_cast<size_t>(n));
        for (int64_t r = 0; r < rows; r++)
          draw_again(mt, weight + r * n, n, count, sums.data(), to + r * count);
        return plait_status(PLAIT_OK);
      }
      std::vector<T> quotient(static_cast<size_t>(rows * n));
      for (size_t i = 0; i < quotient.size(); i++)
        quotient[i] = T(C(weight[i]) / C(T(C(exponential_number(mt, 1)))));
      std::vector<int64_t> order(static_cast<size_t>(n));
      for (int64_t r = 0; r < rows; r++)
        draw_distinct(quotient.data() + r * n, n, count, order, to + r * count);
      return plait_status(PLAIT_OK);
    });
  });
}
PLAIT_DRAWS("multinomial", multinomial);

}  // namespace

}  // namespace plait::pytorch
