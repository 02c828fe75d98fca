// Products of matrices with a term added: addmm and linear.
#include "kernel/avx512.h"
#include "kernel/copy.h"
#include "kernel/float_kernel.h"
#include "kernel/packed_weight.h"
#include "kernel/settings.h"
#include "linalg/gemm.h"
#include "linalg/packed.h"
#include "linalg/product_sizes.h"
#include "pointwise/math.h"

namespace plait::core {
namespace {

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

// Fewer rows read the weights where they are; with more of them packing is a small part.
constexpr int64_t kPackedRows = 16, kMostPackedRows = 4096;
constexpr int64_t kPackedBytes = 64 << 20;  // of the largest weights that are packed
constexpr bool kSelectsPacked =
    any_product([](const ProductSizes &v) { return !v.is_known || v.m >= kPackedRows; });

// Without gradients the weights are packed, and kept so. DECLINE: the usual product is as good.
template <class T>
plait_status linear_packed(const plait_call *c, int64_t rows, Matrix<T> a, const DLTensor *w,
                           const DLTensor *bias, T *to) {
  const int64_t n = w->shape[0], k = w->shape[1], size = packed_size<T>(k, n);
  const bool worth = rows >= kPackedRows && rows <= kMostPackedRows && n >= 32 && k >= 32 &&
                     (a.columns == 1 || a.rows == 1) && (!bias || bias->strides[0] == 1);
  if (!worth || !has_avx512() || size * int64_t(sizeof(T)) > kPackedBytes || reproducible() ||
      !may_keep_packed(c, 1))
    return PLAIT_DECLINE;
  PackedWeight packed;
  PLAIT_TRY(packed.take(c, 1, PackedForm::Right, uint64_t(size) * sizeof(T), [&](void *into) {
    const Matrix<T> b{data<T>(w), w->strides[1], w->strides[0]};
    pack_operand(c, b, k, n, static_cast<T *>(into));
    return PLAIT_OK;
  }));
  return gemm_packed(
      c, PackedProduct<T>{rows, n, k, a, packed.as<T>(), bias ? data<T>(bias) : nullptr, to});
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
  if constexpr (is_float<T> && kSelectsPacked) {
    const plait_status s = linear_packed<T>(c, rows, a, w, bias, to);
    if (s != PLAIT_DECLINE) return s;
  }
  if (bias && rows > 0 && n > 0) {
    const T *b = data<T>(bias);
    if (bias->strides[0] == 1)
      memcpy(to, b, size_t(n) * sizeof(T));
    else
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

PLAIT_FLOAT_KERNEL("addmm", addmm);
PLAIT_FLOAT_KERNEL("linear", linear);

}  // namespace
}  // namespace plait::core
