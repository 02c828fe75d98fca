// Products of matrices and vectors: mm, bmm, mv, dot.
#include <type_traits>

#include "kernel/dense.h"
#include "kernel/vec.h"
#include "linalg/blas_layout.h"
#include "linalg/gemm.h"
#include "pointwise/math.h"

namespace plait::core {
namespace {

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

// The sum of a[i] b[i] for i < n.
template <class T>
T dot_of_run(const T *a, const T *b, int64_t n) {
  Vec<T> s[4] = {};
  int64_t i = 0;
  for (; i + 4 * kLanes<T> <= n; i += 4 * kLanes<T>)
    PLAIT_UNROLL for (int64_t j = 0; j < 4; j++) s[j] =
        fused(load(a + i + j * kLanes<T>), load(b + i + j * kLanes<T>), s[j]);
  T sum = sum_of<T>((s[0] + s[1]) + (s[2] + s[3]));
  for (; i < n; i++) sum = fused(a[i], b[i], sum);
  return sum;
}

// The sum over runs of kChunk elements, whose sums are added in their order.
template <class T>
plait_status dot_of_runs(const plait_call *c, const T *a, const T *b, int64_t n, T *to) {
  if (n <= kChunk) return *to = dot_of_run(a, b, n), PLAIT_OK;
  const int64_t runs = ceil_div(n, kChunk);
  Workspace space;
  PLAIT_TRY(space.take(c, uint64_t(runs) * sizeof(T)));
  T *sums = space.as<T>();
  const int64_t grain = n <= kSerial ? runs : 1;
  parallel_ranges(c, runs, grain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; r++) {
      const int64_t at = r * kChunk;
      sums[r] = dot_of_run(a + at, b + at, n - at < kChunk ? n - at : kChunk);
    }
  });
  T sum = 0;
  for (int64_t r = 0; r < runs; r++) sum += sums[r];
  return *to = sum, PLAIT_OK;
}

template <class T>
plait_status dot_as(const plait_call *c, const DLTensor *a, const DLTensor *b, DLTensor *out) {
  const int64_t n = a->shape[0], step_a = a->strides[0], step_b = b->strides[0];
  if constexpr (std::is_integral_v<T>) {
    using W = scalar::math::wide<T>;
    W sum = 0;
    for (int64_t i = 0; i < n; i++) sum += W(data<T>(a)[i * step_a]) * W(data<T>(b)[i * step_b]);
    return *data<T>(out) = T(sum), PLAIT_OK;
  } else {
    if constexpr (std::is_floating_point_v<T>) {
      if (!names_blas()) {
        Dense<T> x, y;
        PLAIT_TRY(x.take(c, a));
        PLAIT_TRY(y.take(c, b));
        return dot_of_runs<T>(c, x, y, n, data<T>(out));
      }
    }
    return gemm(c, Product<T>{1,
                              1,
                              n,
                              T(1),
                              {data<T>(a), 1, step_a},
                              {data<T>(b), step_b, 1},
                              T(0),
                              data<T>(out),
                              1});
  }
}

plait_status dot(plait_call *c) {
  PLAIT_PRODUCT(kind(result(c)->dtype), return dot_as<T>(c, tensor(c, 0), tensor(c, 1), result(c)))
  return PLAIT_OK;
}

// The work of a product in multiplications. What it reads and writes takes most of the time where a
// side is short.
int64_t work_of(int64_t m, int64_t n, int64_t k) {
  constexpr int64_t kMove = 8;  // multiplications for an element that is read or written
  return m * n * k + kMove * (m * k + k * n + m * n);
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
  const bool plain = blas_layout(one(0).a, m, k).ld && blas_layout(one(0).b, k, n).ld;
  if (batch < 4 || m * n * k == 0 || !plain) {  // few products: each on all threads
    for (int64_t i = 0; i < batch; i++) PLAIT_TRY(gemm(c, one(i)));
    return PLAIT_OK;
  }
  parallel_ranges(c, batch, kOneUnit / work_of(m, n, k) + 1, [&](int64_t begin, int64_t end) {
    gemm_serial(one(begin), Batch{end - begin, a->strides[0], b->strides[0], m * n});
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

PLAIT_KERNEL("mm", mm);
PLAIT_KERNEL("mv", mv);
PLAIT_KERNEL("dot", dot);
PLAIT_KERNEL("bmm", bmm);

}  // namespace
}  // namespace plait::core
