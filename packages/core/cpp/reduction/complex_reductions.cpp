// Reductions of complex numbers. Linear ones run the real operator on the parts, as a last
// dimension of two. The kernel of an operator that was registered last is called first, and files
// are linked in the order of their names, so the kernels for real numbers in reductions.cpp and
// variance.cpp are called before these.
#include "kernel/copy.h"
#include "pointwise/math.h"
#include "reduction/reduce.h"

namespace plait::core {
namespace {

bool is_complex(const DLTensor *t) { return is_complex_kind(kind(t->dtype)); }

struct Handle {  // owned
  plait_tensor *t = nullptr;
  Handle() = default;
  Handle(const Handle &) = delete;
  Handle &operator=(const Handle &) = delete;
  ~Handle() { plait_release(t); }
  // `from` with its parts as a last dimension
  plait_status take_parts(const plait_call *c, const plait_tensor *from) {
    const DLTensor &d = from->dl;
    if (d.ndim + 1 > PLAIT_MAX_DIMS) return PLAIT_DECLINE;
    int64_t shape[PLAIT_MAX_DIMS], strides[PLAIT_MAX_DIMS];
    for (int i = 0; i < d.ndim; i++) {
      shape[i] = d.shape[i];
      strides[i] = 2 * d.strides[i];
    }
    shape[d.ndim] = 2;
    strides[d.ndim] = 1;
    const DLDataType part = {kDLFloat, uint8_t(d.dtype.bits / 2), 1};
    return c->thread->runtime->tensor_on(c->thread, from->storage, d.data, part, d.ndim + 1, shape,
                                         strides, &t);
  }
};

// sum, mean (self, dims, ...)
plait_status by_parts(plait_call *c) {
  if (!is_complex(tensor(c, 0)) || !is_complex(result(c))) return PLAIT_DECLINE;
  const int ndim = tensor(c, 0)->ndim;
  if (ndim == 0) return copy(c, result(c), tensor(c, 0));
  Handle self, output;
  PLAIT_TRY(self.take_parts(c, c->in[0].u.t));
  PLAIT_TRY(output.take_parts(c, c->out[0].u.t));
  plait_value in[PLAIT_MAX_ARGS], out = c->out[0];
  for (int i = 0; i < c->n_in; i++) in[i] = c->in[i];
  in[0].u.t = self.t;
  out.u.t = output.t;
  int64_t dims[PLAIT_MAX_DIMS];
  const uint64_t mask = dims_mask(c, 1, ndim);
  uint32_t n = 0;
  for (int d = 0; d < ndim; d++)
    if (mask >> d & 1) dims[n++] = d;
  in[1] = plait_value{PLAIT_INTS, n, {0}};
  in[1].u.is = dims;
  plait_call inner = *c;
  inner.in = in;
  inner.out = &out;
  inner.size = sizeof inner;
  for (const plait_entry *e = c->op->backend[kDLCPU]; e; e = e->prev) {
    if (e->fn == by_parts) continue;
    inner.self = e;
    const plait_status s = e->fn(&inner);
    if (s != PLAIT_DECLINE) return s;
  }
  return PLAIT_DECLINE;
}
PLAIT_KERNEL("sum", by_parts);
PLAIT_KERNEL("mean", by_parts);

// Calls f(i, walk) for each result i, where walk(g) gives g every element, with its parts as
// float64.
template <class T, class F>
plait_status each_result(const plait_call *c, uint64_t mask, F &&f) {
  Workspace space;
  Reduction r;
  PLAIT_TRY(prepare(c, tensor(c, 0), mask, kind(tensor(c, 0)->dtype), Layout::kAny, &space, &r));
  const T *base = reinterpret_cast<const T *>(r.data);
  const int64_t n = r.reduced.count;
  parallel_ranges(c, r.kept.count, kSerial / (n + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++)
      f(i, n, [&](auto &&g) {
        r.runs(base + r.kept.offset(i), 0, n, [&](const T *p, int64_t m, int64_t step) {
          for (int64_t j = 0; j < m; j++) g(Complex128(p[j * step]));
        });
      });
  });
  return PLAIT_OK;
}

plait_status product(const plait_call *c, uint64_t mask) {
  PLAIT_COMPLEX(kind(result(c)->dtype), {
    T *out = data<T>(result(c));
    return each_result<T>(c, mask, [&](int64_t i, int64_t, auto &&walk) {
      Complex128 all(1.0);
      walk([&](Complex128 z) { all = all * z; });
      out[i] = T(all);
    });
  })
  return PLAIT_OK;
}
plait_status prod(plait_call *c) { return product(c, all_dims(tensor(c, 0)->ndim)); }
plait_status prod_dim(plait_call *c) { return product(c, dims_mask(c, 1, tensor(c, 0)->ndim)); }
PLAIT_KERNEL("prod", prod);
PLAIT_KERNEL("prod.dim", prod_dim);

// The mean of |z - mean|^2: the sum of the parts' variances. (self, dim, *, correction, keepdim)
plait_status moments(const plait_call *c, DLTensor *variance, DLTensor *mean, bool root) {
  const double correction = real(c, 2, 1);
  PLAIT_COMPLEX(kind(tensor(c, 0)->dtype), {
    using R = typename scalar::math::RealOf<T>::type;
    R *to = data<R>(variance);
    T *means = mean ? data<T>(mean) : nullptr;
    const uint64_t mask = dims_mask(c, 1, tensor(c, 0)->ndim);
    return each_result<T>(c, mask, [&](int64_t i, int64_t n, auto &&walk) {
      Complex128 sum(0.0);
      walk([&](Complex128 z) { sum = sum + z; });
      const Complex128 centre(sum.re / double(n), sum.im / double(n));
      double squares = 0;
      walk([&](Complex128 z) {
        const Complex128 d = z - centre;
        squares += d.re * d.re + d.im * d.im;
      });
      const double left = double(n) - correction, v = squares / (left > 0 ? left : 0);
      to[i] = R(root ? __builtin_sqrt(v) : v);
      if (means) means[i] = T(centre);
    });
  })
  return PLAIT_OK;
}
plait_status var(plait_call *c) { return moments(c, result(c), nullptr, false); }
plait_status std_(plait_call *c) { return moments(c, result(c), nullptr, true); }
plait_status var_mean(plait_call *c) { return moments(c, result(c), result(c, 1), false); }
plait_status std_mean(plait_call *c) { return moments(c, result(c), result(c, 1), true); }
PLAIT_KERNEL("var", var);
PLAIT_KERNEL("std", std_);
PLAIT_KERNEL("var_mean", var_mean);
PLAIT_KERNEL("std_mean", std_mean);

}  // namespace
}  // namespace plait::core
