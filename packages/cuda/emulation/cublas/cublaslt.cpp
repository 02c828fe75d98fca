// A stand-in for libcublasLt.so.13 on the emulated driver: it has the functions that plait-cuda
// calls, and computes products by loops of the host, so that what prepares them is under test.
#include <atomic>
#include <complex>
#include <cstring>

#include <plait/half.h>

#include "emulation/stand_in.h"
#include "host/cublas_types.h"

namespace {

using namespace plait::cuda;          // NOLINT: a library of C functions
using namespace plait::cuda::cublas;  // NOLINT
using plait::cuda::emulation::memory_at;

std::atomic<int64_t> calls{0}, choices{0};

struct MatrixLayout {
  int type;
  int64_t rows, columns, stride, count, batch;
};
struct Operation {
  int compute, scale, transpose_a, transpose_b, epilogue;
  const void *bias;
};
struct Preferred {
  uint64_t workspace;
  uint32_t reductions, alignment[4];
};

int size_of(int type) {
  switch (type) {
    case kHalf:
    case kBFloat: return 2;
    case kFloat: return 4;
    case kComplexDouble: return 16;
    default: return 8;
  }
}

using Number = std::complex<double>;

// A matrix in memory of the device.
class Matrix {
 public:
  Matrix(const MatrixLayout &layout, const void *data) : layout_(layout) {
    const int64_t last =
        (layout.count - 1) * layout.batch + (layout.columns - 1) * layout.stride + layout.rows - 1;
    data_ = memory_at(data, size_t(last + 1) * size_t(size_of(layout.type)));
  }
  bool is_there() const { return data_ != nullptr; }
  Number get(int64_t z, int64_t i, int64_t j) const {
    const char *const p = at(z, i, j);
    double pair[2] = {0, 0};
    float floats[2];
    uint16_t half;
    switch (layout_.type) {
      case kFloat: memcpy(floats, p, 4); return double(floats[0]);
      case kDouble: memcpy(pair, p, 8); return pair[0];
      case kHalf: memcpy(&half, p, 2); return double(plait_float16_to_float(half));
      case kBFloat: memcpy(&half, p, 2); return double(plait_bfloat16_to_float(half));
      case kComplexFloat: memcpy(floats, p, 8); return {double(floats[0]), double(floats[1])};
      default: memcpy(pair, p, 16); return {pair[0], pair[1]};
    }
  }
  void set(int64_t z, int64_t i, int64_t j, Number v) {
    char *const p = at(z, i, j);
    const double pair[2] = {v.real(), v.imag()};
    const float floats[2] = {float(pair[0]), float(pair[1])};
    uint16_t half;
    switch (layout_.type) {
      case kFloat: memcpy(p, floats, 4); break;
      case kDouble: memcpy(p, pair, 8); break;
      case kHalf: half = plait_float16_of_float(floats[0]), memcpy(p, &half, 2); break;
      case kBFloat: half = plait_bfloat16_of_float(floats[0]), memcpy(p, &half, 2); break;
      case kComplexFloat: memcpy(p, floats, 8); break;
      default: memcpy(p, pair, 16); break;
    }
  }

 private:
  char *at(int64_t z, int64_t i, int64_t j) const {
    return data_ + (z * layout_.batch + j * layout_.stride + i) * size_of(layout_.type);
  }
  const MatrixLayout &layout_;
  char *data_;
};

template <class T>
const T &as(const void *p) {
  return *static_cast<const T *>(p);
}

Number factor(const void *p, int scale) {
  switch (scale) {
    case kFloat: return double(as<float>(p));
    case kDouble: return as<double>(p);
    case kComplexFloat: return {double(as<float[2]>(p)[0]), double(as<float[2]>(p)[1])};
    default: return {as<double[2]>(p)[0], as<double[2]>(p)[1]};
  }
}

// Whether the layouts fit one another, as the library requires.
bool fits(const Operation &op, const MatrixLayout &a, const MatrixLayout &b, const MatrixLayout &c,
          const MatrixLayout &d) {
  const int64_t m = op.transpose_a ? a.columns : a.rows, k = op.transpose_a ? a.rows : a.columns;
  const int64_t n = op.transpose_b ? b.rows : b.columns, l = op.transpose_b ? b.columns : b.rows;
  const MatrixLayout *const all[] = {&a, &b, &c, &d};
  for (const MatrixLayout *each : all)
    if (each->stride < each->rows || each->type != d.type || each->count != d.count) return false;
  return k == l && d.rows == m && d.columns == n && c.rows == m && c.columns == n;
}

// The work of one call.
struct Product {
  Operation op;
  MatrixLayout a, b, c, d;
  const void *a_data, *b_data, *c_data, *d_data;
  Number alpha, beta;

  MatrixLayout bias() const { return {d.type, d.rows, 1, d.rows, 1, 0}; }
  // Whether all operands lie in memory of the device.
  bool is_there() const {
    return Matrix(a, a_data).is_there() && Matrix(b, b_data).is_there() &&
           Matrix(d, d_data).is_there() && (beta == 0. || Matrix(c, c_data).is_there()) &&
           (op.epilogue != kAddBias || Matrix(bias(), op.bias).is_there());
  }
  void run() const {
    if (!is_there()) return;  // it was freed; the result stays as it is
    const MatrixLayout bias_layout = bias();
    const Matrix x(a, a_data), y(b, b_data), addend(c, c_data), bias_row(bias_layout, op.bias);
    Matrix to(d, d_data);
    const int64_t depth = op.transpose_a ? a.rows : a.columns;
    for (int64_t z = 0; z < d.count; z++)
      for (int64_t j = 0; j < d.columns; j++)
        for (int64_t i = 0; i < d.rows; i++) {
          Number sum = 0;
          for (int64_t l = 0; l < depth; l++)
            sum += (op.transpose_a ? x.get(z, l, i) : x.get(z, i, l)) *
                   (op.transpose_b ? y.get(z, j, l) : y.get(z, l, j));
          sum *= alpha;
          if (beta != 0.) sum += beta * addend.get(z, i, j);
          if (op.epilogue == kAddBias) sum += bias_row.get(0, i, 0);
          to.set(z, i, j, sum);
        }
  }
};

}  // namespace

#define PLAIT_EXPORT extern "C" __attribute__((visibility("default")))

PLAIT_EXPORT int64_t plait_cublas_calls() { return calls; }
PLAIT_EXPORT int64_t plait_cublas_choices() { return choices; }

PLAIT_EXPORT Status cublasLtCreate(Handle *to) {
  static int one;
  *to = &one;
  return kSuccess;
}
PLAIT_EXPORT Status cublasLtMatmulDescCreate(Description *to, int compute, int scale) {
  *to = new Operation{compute, scale, kPlain, kPlain, kNoEpilogue, nullptr};
  return kSuccess;
}
PLAIT_EXPORT Status cublasLtMatmulDescDestroy(Description p) {
  delete static_cast<Operation *>(p);
  return kSuccess;
}
PLAIT_EXPORT Status cublasLtMatmulDescSetAttribute(Description p, int attribute, const void *value,
                                                   size_t bytes) {
  auto *op = static_cast<Operation *>(p);
  switch (attribute) {
    case kTransposeA: memcpy(&op->transpose_a, value, bytes); break;
    case kTransposeB: memcpy(&op->transpose_b, value, bytes); break;
    case kEpilogue: memcpy(&op->epilogue, value, bytes); break;
    case kBiasPointer: memcpy(&op->bias, value, bytes); break;
    default: return kNotSupported;
  }
  return kSuccess;
}
PLAIT_EXPORT Status cublasLtMatrixLayoutCreate(Layout *to, int type, uint64_t rows,
                                               uint64_t columns, int64_t stride) {
  *to = new MatrixLayout{type, int64_t(rows), int64_t(columns), stride, 1, 0};
  return kSuccess;
}
PLAIT_EXPORT Status cublasLtMatrixLayoutDestroy(Layout p) {
  delete static_cast<MatrixLayout *>(p);
  return kSuccess;
}
PLAIT_EXPORT Status cublasLtMatrixLayoutSetAttribute(Layout p, int attribute, const void *value,
                                                     size_t) {
  auto *layout = static_cast<MatrixLayout *>(p);
  if (attribute == kBatchCount) return layout->count = as<int32_t>(value), kSuccess;
  if (attribute == kBatchStride) return layout->batch = as<int64_t>(value), kSuccess;
  return kNotSupported;
}
PLAIT_EXPORT Status cublasLtMatmulPreferenceCreate(Preference *to) {
  *to = new Preferred{};
  return kSuccess;
}
PLAIT_EXPORT Status cublasLtMatmulPreferenceDestroy(Preference p) {
  delete static_cast<Preferred *>(p);
  return kSuccess;
}
PLAIT_EXPORT Status cublasLtMatmulPreferenceSetAttribute(Preference p, int attribute,
                                                         const void *value, size_t) {
  auto *preferred = static_cast<Preferred *>(p);
  if (attribute == kMostWorkspace) return preferred->workspace = as<uint64_t>(value), kSuccess;
  if (attribute == kReductions) return preferred->reductions = as<uint32_t>(value), kSuccess;
  const int i = attribute - kAlignmentA;
  if (i < 0 || i > 3) return kNotSupported;
  preferred->alignment[i] = as<uint32_t>(value);
  return kSuccess;
}
PLAIT_EXPORT Status cublasLtMatmulAlgoGetHeuristic(Handle, Description op, Layout a, Layout b,
                                                   Layout c, Layout d, Preference p, int count,
                                                   Choice *to, int *found) {
  choices++;
  const auto &preferred = as<Preferred>(p);
  const size_t size = size_t(size_of(as<MatrixLayout>(d).type));
  bool works = count > 0 && fits(as<Operation>(op), as<MatrixLayout>(a), as<MatrixLayout>(b),
                                 as<MatrixLayout>(c), as<MatrixLayout>(d));
  for (const uint32_t alignment : preferred.alignment) works = works && alignment >= size;
  *found = works;
  if (!works) return kNotSupported;
  *to = Choice{};
  to->workspace = preferred.workspace < 4096 ? preferred.workspace : 4096;
  return kSuccess;
}
PLAIT_EXPORT Status cublasLtMatmul(Handle, Description description, const void *alpha,
                                   const void *a_data, Layout a_layout, const void *b_data,
                                   Layout b_layout, const void *beta, const void *c_data,
                                   Layout c_layout, void *d_data, Layout d_layout,
                                   const Algorithm *, void *, size_t, driver::Stream stream) {
  const auto &op = as<Operation>(description);
  const Product product{op,
                        as<MatrixLayout>(a_layout),
                        as<MatrixLayout>(b_layout),
                        as<MatrixLayout>(c_layout),
                        as<MatrixLayout>(d_layout),
                        a_data,
                        b_data,
                        c_data,
                        d_data,
                        factor(alpha, op.scale),
                        factor(beta, op.scale)};
  if (!fits(op, product.a, product.b, product.c, product.d) || !product.is_there())
    return kNotSupported;
  calls++;
  return emulation::put(stream, "cublasLtMatmul", [product] { product.run(); }) ? kSuccess
                                                                                : kNotSupported;
}
