// mm, bmm, mv, dot, addmm, linear.
#include "kernels/copy.h"
#include "kernels/gemm.h"
#include "scalar/math.h"

namespace plait::core {
namespace {

// Sums and products wrap around: signed integers are treated as the unsigned ones of their size.
#define PLAIT_PRODUCT(k, ...)                        \
  switch (k) {                                       \
    PLAIT_CASE(F32, float, __VA_ARGS__)              \
    PLAIT_CASE(F64, double, __VA_ARGS__)             \
    PLAIT_CASE(C64, Complex64, __VA_ARGS__)          \
    PLAIT_CASE(C128, Complex128, __VA_ARGS__)        \
    case U8: PLAIT_CASE(I8, uint8_t, __VA_ARGS__)    \
    case U16: PLAIT_CASE(I16, uint16_t, __VA_ARGS__) \
    case U32: PLAIT_CASE(I32, uint32_t, __VA_ARGS__) \
    case U64: PLAIT_CASE(I64, uint64_t, __VA_ARGS__) \
    default: return PLAIT_DECLINE;                   \
  }

template <class T>
Matrix<T> matrix(const DLTensor *t) {  // of the last two dimensions
  return {data<T>(t), t->strides[t->ndim - 2], t->strides[t->ndim - 1]};
}

plait_status mm(plait_call *c) {
  const DLTensor *a = tensor(c, 0), *b = tensor(c, 1);
  DLTensor *out = result(c);
  PLAIT_PRODUCT(kind(out->dtype), {
    return gemm(c, Product<T>{a->shape[0], b->shape[1], a->shape[1], T(1), matrix<T>(a),
                              matrix<T>(b), T(0), data<T>(out), b->shape[1]});
  })
  return PLAIT_OK;
}

plait_status mv(plait_call *c) {
  const DLTensor *a = tensor(c, 0), *x = tensor(c, 1);
  DLTensor *out = result(c);
  PLAIT_PRODUCT(kind(out->dtype), {
    return gemm(c, Product<T>{a->shape[0],
                              1,
                              a->shape[1],
                              T(1),
                              matrix<T>(a),
                              {data<T>(x), x->strides[0], 1},
                              T(0),
                              data<T>(out),
                              1});
  })
  return PLAIT_OK;
}

plait_status dot(plait_call *c) {
  const DLTensor *a = tensor(c, 0), *b = tensor(c, 1);
  DLTensor *out = result(c);
  PLAIT_PRODUCT(kind(out->dtype), {
    return gemm(c, Product<T>{1,
                              1,
                              a->shape[0],
                              T(1),
                              {data<T>(a), 1, a->strides[0]},
                              {data<T>(b), b->strides[0], 1},
                              T(0),
                              data<T>(out),
                              1});
  })
  return PLAIT_OK;
}

template <class T>
plait_status bmm_as(const plait_call *c, const DLTensor *a, const DLTensor *b, DLTensor *out) {
  const int64_t batch = a->shape[0], m = a->shape[1], k = a->shape[2], n = b->shape[2];
  auto one = [&](int64_t i) {
    Product<T> p{m, n, k, T(1), matrix<T>(a), matrix<T>(b), T(0), data<T>(out) + i * m * n, n};
    p.a.data += i * a->strides[0];
    p.b.data += i * b->strides[0];
    return p;
  };
  const bool plain = is_plain(one(0).a, m, k) && is_plain(one(0).b, k, n);
  if (batch < 4 || m * n * k == 0 || !plain) {  // few: each on all threads
    for (int64_t i = 0; i < batch; i++) PLAIT_TRY(gemm(c, one(i)));
    return PLAIT_OK;
  }
  parallel_ranges(c, batch, (1 << 19) / (m * n * k) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) gemm_serial(c, one(i));
  });
  return PLAIT_OK;
}

plait_status bmm(plait_call *c) {
  PLAIT_TRY(check_blas(c));
  DLTensor *out = result(c);
  if (numel(out) == 0) return PLAIT_OK;
  PLAIT_PRODUCT(kind(out->dtype), return bmm_as<T>(c, tensor(c, 0), tensor(c, 1), out))
  return PLAIT_OK;
}

plait_status addmm(plait_call *c) {
  const DLTensor *self = tensor(c, 0), *a = tensor(c, 1), *b = tensor(c, 2);
  DLTensor *out = result(c);
  const Kind k = kind(out->dtype);
  alignas(16) char beta[16] = {}, alpha[16] = {};
  store_number(k, c->in[3], beta);
  store_number(k, c->in[4], alpha);
  const bool used = real(c, 3) != 0 || (c->in[3].tag == PLAIT_COMPLEX && c->in[3].u.fs[1] != 0);
  if (used) PLAIT_TRY(copy(c, out, self));
  PLAIT_PRODUCT(k, {
    const T x = *reinterpret_cast<const T *>(alpha), y = *reinterpret_cast<const T *>(beta);
    return gemm(c, Product<T>{a->shape[0], b->shape[1], a->shape[1], x, matrix<T>(a), matrix<T>(b),
                              used ? y : T(0), data<T>(out), b->shape[1]});
  })
  return PLAIT_OK;
}

// The rows of all leading dimensions as one matrix, if their strides allow it.
template <class T>
bool flatten(const DLTensor *t, Matrix<T> *m, int64_t *rows) {
  const int last = t->ndim - 1;
  *rows = 1;
  int64_t stride = 0;
  for (int d = last - 1; d >= 0; d--) {
    if (t->shape[d] == 1) continue;
    if (*rows == 1) {
      stride = t->strides[d];
    } else if (t->strides[d] != stride * *rows) {
      return false;
    }
    *rows *= t->shape[d];
  }
  *m = {data<T>(t), stride, t->strides[last]};
  return true;
}

template <class T>
plait_status linear_as(const plait_call *c, const DLTensor *x, const DLTensor *w,
                       const DLTensor *bias, DLTensor *out) {
  const int64_t n = w->shape[0], k = w->shape[1];
  T *to = data<T>(out);
  Matrix<T> a;
  int64_t rows;
  Workspace space;
  DLTensor dense = *x;
  int64_t strides[PLAIT_MAX_DIMS];
  if (!flatten(x, &a, &rows)) {
    PLAIT_TRY(space.take(c, uint64_t(numel(x)) * sizeof(T)));
    int64_t step = 1;
    for (int d = x->ndim - 1; d >= 0; d--) {
      strides[d] = step;
      step *= x->shape[d];
    }
    dense.strides = strides;
    dense.data = space.as<char>();
    PLAIT_TRY(copy(c, &dense, x));
    flatten(&dense, &a, &rows);
  }
  if (bias && rows > 0 && n > 0) {
    const T *b = data<T>(bias);
    for (int64_t j = 0; j < n; j++) to[j] = b[j * bias->strides[0]];
    for (int64_t i = 1; i < rows; i++) memcpy(to + i * n, to, size_t(n) * sizeof(T));
  }
  const Matrix<T> b{data<T>(w), w->strides[1], w->strides[0]};
  return gemm(c, Product<T>{rows, n, k, T(1), a, b, bias ? T(1) : T(0), to, n});
}

plait_status linear(plait_call *c) {
  DLTensor *out = result(c);
  PLAIT_PRODUCT(kind(out->dtype),
                return linear_as<T>(c, tensor(c, 0), tensor(c, 1), tensor(c, 2), out))
  return PLAIT_OK;
}

PLAIT_KERNEL("mm", mm);
PLAIT_KERNEL("mv", mv);
PLAIT_KERNEL("dot", dot);
PLAIT_KERNEL("bmm", bmm);
PLAIT_KERNEL("addmm", addmm);
PLAIT_KERNEL("linear", linear);

}  // namespace
}  // namespace plait::core
