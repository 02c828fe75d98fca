// One value everywhere: fill_, zero_, full, zeros, ones and their like; and the sequences arange,
// linspace, eye.
#include "kernels/copy.h"
#include "kernels/elementwise.h"

namespace plait::core {
namespace {

struct Pattern {
  char bytes[64];  // the element, repeated
  int item;
  bool uniform;  // every byte is the same
};

void fill_loop(char *out, char *const *, int64_t n, const void *context) {
  const Pattern &p = *static_cast<const Pattern *>(context);
  const int64_t bytes = n * p.item;
  if (p.uniform) {
    memset(out, p.bytes[0], size_t(bytes));
    return;
  }
  int64_t i = 0;
  for (; i + 64 <= bytes; i += 64) memcpy(out + i, p.bytes, 64);
  if (i < bytes) memcpy(out + i, p.bytes, size_t(bytes - i));
}

// Whether an integer dtype holds the number; floating dtypes hold all.
bool fits(Kind k, const plait_value &v) {
  if (v.tag != PLAIT_INT || k == Bool || k >= F32) return true;
  const int bits = size_of(k) * 8;
  const bool is_unsigned = k == U8 || k == U16 || k == U32 || k == U64;
  if (is_unsigned) return v.u.i >= 0 && (bits == 64 || v.u.i >> bits == 0);
  return bits == 64 || (v.u.i >= -(int64_t(1) << (bits - 1)) && v.u.i < int64_t(1) << (bits - 1));
}

plait_status checked_fill(const plait_call *c, const DLTensor *to, const plait_value &v,
                          const char *argument) {
  if (v.tag == PLAIT_TENSOR) return copy(c, to, &v.u.t->dl);
  const Kind k = kind(to->dtype);
  if (k != Unknown && !fits(k, v))
    return PLAIT_FAIL(c, PLAIT_VALUE_ERROR, "`%s` must fit in %d-bit integers; got %lld", argument,
                      size_of(k) * 8, (long long)v.u.i);
  return fill(c, to, v);
}

plait_value number(int64_t i) {
  plait_value v{PLAIT_INT, 0, {0}};
  v.u.i = i;
  return v;
}

plait_status fill_(plait_call *c) { return checked_fill(c, tensor(c, 0), c->in[1], "value"); }
plait_status full(plait_call *c) { return checked_fill(c, result(c), c->in[1], "value"); }
plait_status zero_(plait_call *c) { return fill(c, tensor(c, 0), number(0)); }
plait_status zeros(plait_call *c) { return fill(c, result(c), number(0)); }
plait_status ones(plait_call *c) { return fill(c, result(c), number(1)); }
plait_status empty(plait_call *) { return PLAIT_OK; }

PLAIT_KERNEL("fill_", fill_);
PLAIT_KERNEL("full", full);
PLAIT_KERNEL("full_like", full);
PLAIT_KERNEL("zero_", zero_);
PLAIT_KERNEL("zeros", zeros);
PLAIT_KERNEL("zeros_like", zeros);
PLAIT_KERNEL("ones", ones);
PLAIT_KERNEL("ones_like", ones);
PLAIT_KERNEL("empty", empty);
PLAIT_KERNEL("empty_like", empty);

// ---- sequences
// -----------------------------------------------------------------------------------------------------
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

plait_status arange_from(plait_call *c, const plait_value &start, const plait_value &step) {
  DLTensor *out = result(c);
  const int64_t n = numel(out);
  const bool whole = start.tag != PLAIT_FLOAT && step.tag != PLAIT_FLOAT;
  const double f = start.tag == PLAIT_FLOAT ? start.u.f : double(start.u.i);
  const double df = step.tag == PLAIT_FLOAT ? step.u.f : double(step.u.i);
  const Kind k = kind(out->dtype);
  if (!whole && k != F32 &&
      k != F64) {  // an integer dtype asked for with fractional numbers: round at each element
    PLAIT_NUMERIC(k, {
      T *to = data<T>(out);
      for (int64_t i = 0; i < n; i++) to[i] = T(int64_t(f + double(i) * df));
    })
    return PLAIT_OK;
  }
  PLAIT_NUMERIC(k, {
    T *to = data<T>(out);
    parallel_ranges(c, n, kSerial, [&](int64_t begin, int64_t end) {
      sequence(to, begin, end, f, df, whole ? start.u.i : 0, whole ? step.u.i : 0);
    });
  })
  return PLAIT_OK;
}

plait_status arange(plait_call *c) { return arange_from(c, number(0), number(1)); }
plait_status arange_start(plait_call *c) { return arange_from(c, c->in[0], c->in[2]); }

plait_status linspace(plait_call *c) {
  DLTensor *out = result(c);
  const double start = real(c, 0), end = real(c, 1);
  const int64_t n = numel(out), half = n / 2;
  const double step = n > 1 ? (end - start) / double(n - 1) : 0;
  PLAIT_NUMERIC(kind(out->dtype), {
    T *to = data<T>(out);
    for (int64_t i = 0; i < n; i++) {  // from both ends, so that both are met exactly
      const double x =
          i < half || n == 1 ? start + double(i) * step : end - double(n - 1 - i) * step;
      to[i] = is_float<T> ? T(x) : T(int64_t(x));
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
PLAIT_KERNEL("eye", eye);

}  // namespace

plait_status fill(const plait_call *c, const DLTensor *to, const plait_value &value) {
  const Kind k = kind(to->dtype);
  if (k == Unknown) return PLAIT_DECLINE;
  Pattern p;
  p.item = size_of(k);
  alignas(16) char element[16] = {};
  store_number(k, value, element);
  p.uniform = true;
  for (int i = 0; i < 64; i++) {
    p.bytes[i] = element[i % p.item];
    p.uniform &= p.bytes[i] == p.bytes[0];
  }
  Plan plan;
  plan.add(to, p.item);
  plan.finish();
  const Inner inner{fill_loop, &p, {p.item}};
  run_elementwise(c, plan, inner);
  return PLAIT_OK;
}

}  // namespace plait::core
