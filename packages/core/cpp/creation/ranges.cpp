// Sequences: arange, linspace, logspace, eye.
#include <math.h>

#include "kernel/copy.h"

namespace plait::core {
namespace {

plait_value number(int64_t i) {
  plait_value v{PLAIT_INT, 0, {0}};
  v.u.i = i;
  return v;
}

// The whole part, clamped to the range of int64.
int64_t cut_off(double x) {
  return x >= 0x1p63 ? INT64_MAX : x >= -0x1p63 ? int64_t(x) : x < 0 ? INT64_MIN : 0;
}

// start + i step, computed from i so that errors don't add up
template <class T>
void sequence(T *to, int64_t begin, int64_t end, double start, double step, int64_t whole_start,
              int64_t whole_step) {
  if constexpr (is_float<T>) {
    for (int64_t i = begin; i < end; i++) to[i] = T(start + double(i) * step);
  } else {
    for (int64_t i = begin; i < end; i++)
      to[i] = T(uint64_t(whole_start) + uint64_t(i) * uint64_t(whole_step));
  }
}

// For an integer dtype start and step are truncated first, as in the shape function.
plait_status arange_from(plait_call *c, const plait_value &start, const plait_value &step) {
  DLTensor *out = result(c);
  const double f = start.tag == PLAIT_FLOAT ? start.u.f : double(start.u.i);
  const double df = step.tag == PLAIT_FLOAT ? step.u.f : double(step.u.i);
  const int64_t i = start.tag == PLAIT_FLOAT ? cut_off(f) : start.u.i;
  const int64_t di = step.tag == PLAIT_FLOAT ? cut_off(df) : step.u.i;
  PLAIT_NUMERIC(kind(out->dtype), {
    T *to = data<T>(out);
    parallel_ranges(c, numel(out), kSerial,
                    [&](int64_t begin, int64_t end) { sequence(to, begin, end, f, df, i, di); });
  })
  return PLAIT_OK;
}

plait_status arange(plait_call *c) { return arange_from(c, number(0), number(1)); }
plait_status arange_start(plait_call *c) { return arange_from(c, c->in[0], c->in[2]); }

// The numbers of linspace and logspace as complex numbers, computed from both ends, so that both
// ends are exact.
struct Between {
  double start[2], end[2], step[2];
  int64_t n;
  // For an integer dtype the ends are truncated first.
  Between(const plait_call *c, int64_t count) : n(count) {
    const bool cut = kind(result(c)->dtype) < F32;
    read(c->in[0], cut, start);
    read(c->in[1], cut, end);
    for (int k = 0; k < 2; k++)
      step[k] = n > 1 ? end[k] / double(n - 1) - start[k] / double(n - 1) : 0;
    if (n > 1 && end[0] - start[0] < 0x1p1023 && start[0] - end[0] < 0x1p1023)
      step[0] = (end[0] - start[0]) / double(n - 1);
  }
  static void read(const plait_value &v, bool cut, double *to) {
    const bool tensor = v.tag == PLAIT_TENSOR;
    if (tensor)
      read_element(v.u.t->dl, to);
    else
      to[0] = v.tag == PLAIT_FLOAT ? v.u.f : v.tag == PLAIT_COMPLEX ? v.u.fs[0] : double(v.u.i);
    if (!tensor) to[1] = v.tag == PLAIT_COMPLEX ? v.u.fs[1] : 0;
    if (cut) to[0] = trunc(to[0]);
  }
  static void read_element(const DLTensor &t, double *to) {
    to[1] = 0;
    switch (kind(t.dtype)) {
      case F32: to[0] = *data<float>(&t); return;
      case F64: to[0] = *data<double>(&t); return;
      case C64: to[0] = data<float>(&t)[0], to[1] = data<float>(&t)[1]; return;
      case C128: to[0] = data<double>(&t)[0], to[1] = data<double>(&t)[1]; return;
      case I64: to[0] = double(*data<int64_t>(&t)); return;
      default: to[0] = NAN;  // the shape function accepts no other dtypes
    }
  }
  double at(int64_t i, int k = 0) const {
    return i < n / 2 || n == 1 ? start[k] + double(i) * step[k]
                               : end[k] - double(n - 1 - i) * step[k];
  }
};

void store_complex(DLTensor *out, int64_t i, double re, double im) {
  const double z[2] = {re, im};
  plait_value v{PLAIT_COMPLEX, 0, {0}};
  v.u.fs = z;
  const Kind k = kind(out->dtype);
  store_number(k, v, data<char>(out) + i * size_of(k));
}

plait_status linspace(plait_call *c) {
  DLTensor *out = result(c);
  const int64_t n = numel(out);
  const Between line(c, n);
  const Kind k = kind(out->dtype);
  if (k == C64 || k == C128) {
    for (int64_t i = 0; i < n; i++) store_complex(out, i, line.at(i), line.at(i, 1));
    return PLAIT_OK;
  }
  PLAIT_NUMERIC(k, {
    T *to = data<T>(out);
    for (int64_t i = 0; i < n; i++) {
      const double x = line.at(i);
      to[i] = is_float<T> ? T(x) : T(cut_off(x));
    }
  })
  return PLAIT_OK;
}

plait_status logspace(plait_call *c) {
  DLTensor *out = result(c);
  const int64_t n = numel(out);
  const Between line(c, n);
  const double base = real(c, 3, 10);
  const Kind k = kind(out->dtype);
  if (k == C64 || k == C128) {  // base^(x + iy) = base^x (cos(y log base) + i sin(y log base))
    const double turn = log(base < 0 ? -base : base), half = base < 0 ? 3.141592653589793 : 0;
    for (int64_t i = 0; i < n; i++) {
      const double x = line.at(i), y = line.at(i, 1);
      const double size = pow(base < 0 ? -base : base, x) * exp(-half * y);
      const double angle = turn * y + half * x;
      store_complex(out, i, size * cos(angle), size * sin(angle));
    }
    return PLAIT_OK;
  }
  PLAIT_NUMERIC(k, {
    T *to = data<T>(out);
    for (int64_t i = 0; i < n; i++) {
      const double x = pow(base, line.at(i));
      to[i] = is_float<T> ? T(x) : T(cut_off(x));
    }
  })
  return PLAIT_OK;
}

plait_status eye(plait_call *c) {
  DLTensor *out = result(c);
  PLAIT_TRY(fill(c, out, number(0)));
  const Kind k = kind(out->dtype);
  const int64_t n = out->shape[0] < out->shape[1] ? out->shape[0] : out->shape[1];
  char one[16];
  store_number(k, number(1), one);
  const size_t item = size_t(size_of(k));
  for (int64_t i = 0; i < n; i++)
    memcpy(data<char>(out) + (i * out->shape[1] + i) * int64_t(item), one, item);
  return PLAIT_OK;
}

PLAIT_KERNEL("arange", arange);
PLAIT_KERNEL("arange.start", arange_start);
PLAIT_KERNEL("linspace", linspace);
PLAIT_KERNEL("linspace.tensors", linspace);
PLAIT_KERNEL("logspace", logspace);
PLAIT_KERNEL("logspace.tensors", logspace);
PLAIT_KERNEL("eye", eye);

}  // namespace
}  // namespace plait::core
