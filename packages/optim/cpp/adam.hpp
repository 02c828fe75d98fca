// What the steps of Adam and its kin share. Adamax has the average of the gradient alone.
#ifndef PLAIT_OPTIM_ADAM_HPP
#define PLAIT_OPTIM_ADAM_HPP
#include <cmath>

#include "arrays.hpp"
#include "elementwise.hpp"

namespace plait::optim {

// The numbers of Adam, NAdam and RAdam, which keep both averages. `lr` is the place of the first of
// lr, beta1, beta2, eps and weight_decay, which follow one another in the schema, `maximize` that
// of the first of maximize and grad_scale.
template <class Rule>
Rule rule_with_averages(const plait_value *in, int lr, int decoupled, int maximize) {
  Rule r{};
  const double rate = in[lr].u.f, decay = in[lr + 4].u.f;
  const bool is_decoupled = in[decoupled].u.i;
  r.scale = gradient_scale(in, maximize);
  r.l2 = is_decoupled ? 0 : decay;
  r.keep = is_decoupled ? 1 - rate * decay : 1;
  r.weight1 = 1 - in[lr + 1].u.f;
  r.beta2 = in[lr + 2].u.f;
  r.weight2 = 1 - r.beta2;
  r.eps = in[lr + 3].u.f;
  return r;
}

// The C library's powers may depend on the processor. These are of operations that every one rounds
// alike: beta^t by squaring,
inline double whole_power(double beta, int64_t t) {
  double power = 1;
  for (; t > 0; t /= 2, beta *= beta)
    if (t % 2) power *= beta;
  return power;
}
// and e^x, for x <= 0, by 2^n e^r with r in [-ln(2) / 2, ln(2) / 2] and the series of e^r.
inline double exponential(double x) {
  if (!(x > -700)) return x == x ? 0 : x;
  const double n = std::floor(x * 0x1.71547652b82fep0 + 0.5);
  const double r = (x - n * 0x1.62e42feep-1) - n * 0x1.a39ef35793c76p-33;
  double sum = 1;
  for (int k = 14; k > 0; k--) sum = 1 + r / k * sum;
  return std::ldexp(sum, int(n));
}

// An average that started from 0 is too small by this factor after t steps.
inline double bias_correction(double beta, int64_t t) { return 1 - whole_power(beta, t); }
inline Array bias_correction(double beta, const Array &t) { return Array(1) - power(beta, t); }

}  // namespace plait::optim
#endif  // PLAIT_OPTIM_ADAM_HPP
