// Poisson, binomial and gamma numbers, by rejection: PyTorch's order of draws. Parameters that no
// distribution has are left to the next kernel. Where PyTorch computes with float constants or in
// the dtype of the elements, so do these.
#include <cmath>
#include <limits>

#include "random/draws.hpp"

namespace plait::pytorch {

namespace {

// The number of uniform factors that keep a product above exp(-rate) (Knuth); from rate 10 on,
// Hormann's transformed rejection (1993), "The transformed rejection method for generating Poisson
// random variables".
double poisson_number(MersenneTwister &mt, double rate) {
  if (rate == 0) return 0;
  const auto uniform = [&mt] { return mt.unit(double()); };
  if (rate < 10) {
    const double least = std::exp(-rate);
    int64_t k = 0;
    for (double product = uniform(); product > least; product *= uniform()) k++;
    return double(k);
  }
  const double log_rate = std::log(rate);
  const double b = 0.931 + 2.53 * std::sqrt(rate), a = -0.059 + 0.02483 * b;
  const double inverse = 1.1239 + 1.1328 / (b - 3.4), squeeze = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    const double u = uniform() - 0.5, v = uniform(), us = 0.5 - std::fabs(u);
    const double k = std::floor((2 * a / us + b) * u + rate + 0.43);
    if (us >= 0.07 && v <= squeeze) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    if (std::log(v) + std::log(inverse) - std::log(a / (us * us) + b) <=
        -rate + k * log_rate - std::lgamma(k + 1))
      return k;
  }
}

// log k! less Stirling's approximation.
template <class T>
T stirling_rest(T k) {
  constexpr double first[] = {0.0810614667953272,  0.0413406959554092, 0.0276779256849983,
                              0.02079067210376509, 0.0166446911898211, 0.0138761288230707,
                              0.0118967099458917,  0.0104112652619720, 0.00925546218271273,
                              0.00833056343336287};
  if (k <= 9) return T(first[size_t(k)]);
  const T square = (k + 1) * (k + 1);
  return T((1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1));
}

// Successes in `count` trials of probability p <= 1/2: for few expected ones the gaps between them,
// which are geometric; else Hormann's BTRS (1993), "The generation of binomial random variates".
template <class T>
T binomial_successes(MersenneTwister &mt, T count, T p) {
  const auto uniform = [&mt] { return T(mt.unit(double())); };
  if (count * p < 10.0) {
    const T scale = std::log1p(-p);
    T sum = 0, k = 0;
    for (;; k++) {
      sum += std::ceil(std::log(uniform()) / scale);
      if (sum > count) return k;
    }
  }
  const T spread = std::sqrt(count * p * (1 - p));
  const T b = T(1.15 + 2.53 * spread), a = T(-0.0873 + 0.0248 * b + 0.01 * p);
  const T centre = T(count * p + 0.5), squeeze = T(0.92 - 4.2 / b), ratio = p / (1 - p);
  const T alpha = T((2.83 + 5.1 / b) * spread), mode = std::floor((count + 1) * p);
  for (;;) {
    const T u = T(mt.unit(double()) - 0.5);
    T v = uniform();
    const T us = T(0.5 - std::fabs(u)), k = std::floor((2 * a / us + b) * u + centre);
    if (us >= 0.07 && v <= squeeze) return k;
    if (k < 0 || k > count) continue;
    v = std::log(v * alpha / (a / (us * us) + b));
    const T bound =
        T((mode + 0.5) * std::log((mode + 1) / (ratio * (count - mode + 1))) +
          (count + 1) * std::log((count - mode + 1) / (count - k + 1)) +
          (k + 0.5) * std::log(ratio * (count - k + 1) / (k + 1)) + stirling_rest(mode) +
          stirling_rest(count - mode) - stirling_rest(k) - stirling_rest(count - k));
    if (v <= bound) return k;
  }
}
template <class T>
T binomial_number(MersenneTwister &mt, T count, T p) {
  if (count <= 0 || p <= 0) return 0;
  if (p >= 1) return count;
  return p <= 0.5 ? binomial_successes(mt, count, p)
                  : count - binomial_successes(mt, count, T(1 - p));
}

// Marsaglia and Tsang (2000), "A simple method for generating gamma variables"; shapes below 1 by a
// power of a uniform number.
template <class T>
T gamma_number(MersenneTwister &mt, T alpha) {
  double boost = 1;
  if (alpha < 1) {
    if (alpha == 0) return 0;
    boost = std::pow(1 - mt.unit(double()), 1 / alpha);
    alpha += 1;
  }
  const double d = alpha - 1.0f / 3.0f, scale = 1 / std::sqrt(9 * d);
  for (;;) {
    double x = 0, root = 0;
    do {
      x = mt.normal();
      root = 1 + scale * x;
    } while (root <= 0);
    const double v = root * root * root, u = 1 - mt.unit(double()), squared = x * x;
    if (u < 1 - 0.0331f * squared * squared ||
        std::log(u) < 0.5 * squared + d * (1 - v + std::log(v)))
      return T(boost * d * v);
  }
}

// Sets the elements of the result, in the order of their indices, to `f(mt, parameters ...)`.
template <class T, class Valid, class F>
plait_status drawn_each(plait_call *c, const Valid &valid, const F &f) {
  const DLTensor &a = target(c), &out = c->out[0].u.t->dl;
  bool are_valid = true;
  const Walk walk(InOrder(out).t, out, a);
  walk.each([&](const int64_t *at) { are_valid &= valid(data<T>(a)[at[2]]); });
  if (!are_valid) return PLAIT_DECLINE;
  return drawing(c, [&](MersenneTwister &mt) {
    walk.each([&](const int64_t *at) { data<T>(out)[at[1]] = T(f(mt, data<T>(a)[at[2]])); });
    return plait_status(PLAIT_OK);
  });
}

plait_status poisson(plait_call *c) {  // poisson(self, *, generator)
  constexpr double most = 0x1p53;
  return for_floating(target(c).dtype, [&](auto kind) {
    using T = decltype(kind);
    using C = typename Computes<T>::type;
    return drawn_each<T>(
        c, [](T rate) { return C(rate) >= 0 && double(C(rate)) <= most; },
        [](MersenneTwister &mt, T rate) { return C(poisson_number(mt, C(rate))); });
  });
}
PLAIT_DRAWS("poisson", poisson);

plait_status standard_gamma(plait_call *c) {  // _standard_gamma(self, *, generator)
  const auto draw = [c](auto kind) {
    using T = decltype(kind);
    return drawn_each<T>(
        c, [](T alpha) { return alpha >= 0 && alpha < std::numeric_limits<T>::infinity(); },
        [](MersenneTwister &mt, T alpha) {
          return std::max(std::numeric_limits<T>::min(), gamma_number(mt, alpha));
        });
  };
  switch (key(target(c).dtype)) {
    case key(dtype::float32): return draw(float());
    case key(dtype::float64): return draw(double());
    default: return PLAIT_DECLINE;
  }
}
PLAIT_DRAWS("_standard_gamma", standard_gamma);

plait_status binomial(plait_call *c) {  // binomial_draw(count, prob, *, generator)
  const auto draw = [c](auto kind) {
    using T = decltype(kind);
    const DLTensor &count = target(c), &p = c->in[1].u.t->dl, &out = c->out[0].u.t->dl;
    bool are_valid = true;
    const Walk walk(InOrder(out).t, out, count, p);
    walk.each([&](const int64_t *at) {
      const T n = data<T>(count)[at[2]], x = data<T>(p)[at[3]];
      are_valid &= n >= 0 && n < std::numeric_limits<T>::infinity() && x >= 0 && x <= 1;
    });
    if (!are_valid) return plait_status(PLAIT_DECLINE);
    return drawing(c, [&](MersenneTwister &mt) {
      walk.each([&](const int64_t *at) {
        data<T>(out)[at[1]] = binomial_number(mt, data<T>(count)[at[2]], data<T>(p)[at[3]]);
      });
      return plait_status(PLAIT_OK);
    });
  };
  switch (key(target(c).dtype)) {
    case key(dtype::float32): return draw(float());
    case key(dtype::float64): return draw(double());
    default: return PLAIT_DECLINE;
  }
}
PLAIT_DRAWS("binomial_draw", binomial);

}  // namespace

}  // namespace plait::pytorch
