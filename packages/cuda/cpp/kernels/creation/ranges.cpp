// Sequences: arange, linspace, logspace, eye.
#include "block/block.h"
#include "block/convert.h"

namespace plait::cuda {
namespace {

struct ArangeArgs {
  void *to;
  int64_t n;
  double start, step;
  int64_t whole_start, whole_step;
};
// An end of linspace: a number, or an element of the device, float64, complex128 or int64.
struct End {
  const void *from;
  int32_t parts, is_integer;
  double number[2];
};
struct LineArgs {
  void *to;
  int64_t n;
  End start, end;
  double base;        // of logspace
  int32_t is_powers;  // logspace
};
struct DiagonalArgs {
  void *to;
  int64_t n, step;
  uint64_t one[2];
};

#if PLAIT_KERNELS
template <class T>
PLAIT_DEVICE void arange_elements(Thread &t, const ArangeArgs &a) {
  const auto to = t.global<T>(a.to);
  for (int64_t i = t.index(); i < a.n; i += t.stride()) {
    if constexpr (std::is_integral_v<T>)
      to.store(i, T(uint64_t(a.whole_start) + uint64_t(i) * uint64_t(a.whole_step)));
    else
      to.store(i, convert<T>(a.start + double(i) * a.step));
  }
}

// The whole part, clamped to the range of int64.
PLAIT_DEVICE int64_t cut_off(double x) {
  return x >= 0x1p63 ? INT64_MAX : x >= -0x1p63 ? int64_t(x) : x < 0 ? INT64_MIN : 0;
}

PLAIT_DEVICE void read_end(Thread &t, const End &e, bool cut, double *to) {
  to[0] = e.number[0], to[1] = e.number[1];
  if (e.from && e.is_integer) to[0] = double(t.global<const int64_t>(e.from).load(0));
  if (e.from && !e.is_integer)
    for (int k = 0; k < e.parts; k++) to[k] = t.global<const double>(e.from).load(k);
  if (cut) to[0] = trunc(to[0]);  // for an integer dtype the ends are truncated first
}

// Computed from both ends, so that both are exact.
struct Line {
  double start[2], end[2], step[2];
  int64_t n;
  PLAIT_DEVICE Line(Thread &t, const LineArgs &a, bool cut) : n(a.n) {
    read_end(t, a.start, cut, start);
    read_end(t, a.end, cut, end);
    for (int k = 0; k < 2; k++)
      step[k] = n > 1 ? end[k] / double(n - 1) - start[k] / double(n - 1) : 0;
    if (n > 1 && end[0] - start[0] < 0x1p1023 && start[0] - end[0] < 0x1p1023)
      step[0] = (end[0] - start[0]) / double(n - 1);
  }
  PLAIT_DEVICE double at(int64_t i, int k) const {
    return i < n / 2 || n == 1 ? start[k] + double(i) * step[k]
                               : end[k] - double(n - 1 - i) * step[k];
  }
};

template <class T>
PLAIT_DEVICE void line_elements(Thread &t, const LineArgs &a) {
  const auto to = t.global<T>(a.to);
  const Line line(t, a, std::is_integral_v<T>);
  for (int64_t i = t.index(); i < a.n; i += t.stride()) {
    double re = line.at(i, 0), im = 0;
    if constexpr (scalar::math::is_complex<T>) {
      im = line.at(i, 1);
      if (a.is_powers) {  // base^(x + iy) = base^x (cos(y log base) + i sin(y log base))
        const double size = a.base < 0 ? -a.base : a.base, turn = log(size),
                     half = a.base < 0 ? 3.141592653589793 : 0;
        const double radius = pow(size, re) * exp(-half * im), angle = turn * im + half * re;
        re = radius * cos(angle), im = radius * sin(angle);
      }
      using R = typename scalar::math::RealOf<T>::type;
      to.store(i, T(R(re), R(im)));
    } else {
      if (a.is_powers) re = pow(a.base, re);
      if constexpr (std::is_integral_v<T>)
        to.store(i, T(cut_off(re)));
      else
        to.store(i, convert<T>(re));
    }
  }
}

template <class T>
PLAIT_DEVICE void write_diagonal(Thread &t, const DiagonalArgs &a) {
  T one;
  memcpy(&one, a.one, sizeof one);
  for (int64_t i = t.index(); i < a.n; i += t.stride()) t.global<T>(a.to).store(i * a.step, one);
}
#endif

PLAIT_DEVICE_KERNEL(arange_elements, ArangeArgs, 256, NUMERIC);
PLAIT_DEVICE_KERNEL(line_elements, LineArgs, 256, ARITHMETIC);
PLAIT_DEVICE_KERNEL(write_diagonal, DiagonalArgs, 256, SIZES);

}  // namespace
}  // namespace plait::cuda

#if PLAIT_HOST
#include "host/copy.h"

namespace plait::cuda {
namespace {

// The whole part, clamped to the range of int64.
int64_t whole_part(const plait_value &v) {
  if (v.tag != PLAIT_FLOAT) return v.u.i;
  const double x = v.u.f;
  return x >= 0x1p63 ? INT64_MAX : x >= -0x1p63 ? int64_t(x) : x < 0 ? INT64_MIN : 0;
}
double real_part(const plait_value &v) { return v.tag == PLAIT_FLOAT ? v.u.f : double(v.u.i); }

plait_status arange_from(plait_call *c, const plait_value &start, const plait_value &step) {
  const DLTensor *out = result(c);
  const ArangeArgs a{out->data,       numel(out),        real_part(start),
                     real_part(step), whole_part(start), whole_part(step)};
  return launch(c, arange_elements_kernel, kind(out->dtype), a, blocks_for(c, a.n, 256), 256);
}
plait_status arange(plait_call *c) {
  plait_value zero{PLAIT_INT, 0, {0}}, one{PLAIT_INT, 0, {0}};
  one.u.i = 1;
  return arange_from(c, zero, one);
}
plait_status arange_start(plait_call *c) { return arange_from(c, c->in[0], c->in[2]); }

End end_of(plait_value v) {
  End e{};
  double parts[2];
  if (v.tag == PLAIT_TENSOR) {
    const DLTensor *t = &v.u.t->dl;
    if (t->device.device_type != kDLCPU) {
      const Kind k = kind(t->dtype);
      e.from = t->data, e.is_integer = k == I64, e.parts = k == C128 ? 2 : 1;
      return e;
    }
    read_number(t, &v, parts);
  }
  e.number[0] = v.tag == PLAIT_COMPLEX ? v.u.fs[0] : real_part(v);
  e.number[1] = v.tag == PLAIT_COMPLEX ? v.u.fs[1] : 0;
  return e;
}

plait_status line(plait_call *c, double base, bool is_powers) {
  const DLTensor *out = result(c);
  const LineArgs a{out->data, numel(out), end_of(c->in[0]), end_of(c->in[1]), base, is_powers};
  return launch(c, line_elements_kernel, kind(out->dtype), a, blocks_for(c, a.n, 256), 256);
}
plait_status linspace(plait_call *c) { return line(c, 0, false); }
plait_status logspace(plait_call *c) { return line(c, real(c, 3, 10), true); }

plait_status eye(plait_call *c) {
  const DLTensor *out = result(c);
  PLAIT_TRY(fill_tensor(c, out, int64_t(0)));
  DiagonalArgs a{out->data,
                 out->shape[0] < out->shape[1] ? out->shape[0] : out->shape[1],
                 out->shape[1] + 1,
                 {}};
  plait_value one{PLAIT_INT, 0, {0}};
  one.u.i = 1;
  store_number(kind(out->dtype), one, a.one);
  return launch(c, write_diagonal_kernel, instance_of_size(size_of(kind(out->dtype))), a,
                blocks_for(c, a.n, 256), 256);
}

PLAIT_KERNEL("arange", arange);
PLAIT_KERNEL("arange.start", arange_start);
PLAIT_KERNEL("linspace", linspace);
PLAIT_KERNEL("linspace.tensors", linspace);
PLAIT_KERNEL("logspace", logspace);
PLAIT_KERNEL("logspace.tensors", logspace);
PLAIT_KERNEL("eye", eye);

}  // namespace

plait_status number_elements(const plait_call *c, int64_t *to, int64_t n) {
  const ArangeArgs a{to, n, 0, 0, 0, 1};
  return launch(c, arange_elements_kernel, I64, a, blocks_for(c, n, 256), 256);
}

}  // namespace plait::cuda
#endif
