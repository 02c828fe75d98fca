// Copies between any two layouts and dtypes: copy_, clone, cast. Dense ones of one dtype are the
// driver's.
#include "block/block.h"
#include "block/convert.h"
#include "host/walk.h"

namespace plait::cuda {
namespace {

struct CopyArgs {
  char *to;
  const char *from;
  int64_t n;
  Walk<2> walk;
};
struct TransposeArgs {  // rows of `to` are columns of `from`
  char *to;
  const char *from;
  int64_t rows, columns;        // of a matrix of `to`; its columns are neighbours
  int64_t to_step, from_step;  // bytes from one row of `to`, and from one column of it in `from`
  int64_t across, down;         // tiles
  Walk<2> matrices;
};
struct CastArgs {
  char *to;
  const char *from;
  int64_t n;
  int32_t kind, is_dense;  // of `from`; both are dense
  Walk<2> walk;
};

#if PLAIT_KERNELS
constexpr int kUnrolled = 4;  // independent loads of a thread

template <class T>
PLAIT_DEVICE void copy_strided(Thread &t, const CopyArgs &a) {
  constexpr int64_t item = sizeof(T);
  const auto from = t.global<const T>(a.from);
  const auto to = t.global<T>(a.to);
  const int64_t step = t.stride();
  for (int64_t i = t.index(); i < a.n; i += kUnrolled * step) {
    T v[kUnrolled];
    int64_t at[kUnrolled];
#pragma unroll
    for (int u = 0; u < kUnrolled; u++) {
      if (i + u * step >= a.n) continue;
      int64_t offset[2];
      a.walk.seek(i + u * step, offset);
      at[u] = offset[0] / item;
      v[u] = from.load(offset[1] / item);
    }
#pragma unroll
    for (int u = 0; u < kUnrolled; u++)
      if (i + u * step < a.n) to.store(at[u], v[u]);
  }
}

// A tile is read along `from` and written along `to`; the row of shared memory has one element
// more, so that columns lie in different banks.
template <class T>
PLAIT_DEVICE void copy_transposed(Block &t, const TransposeArgs &a) {
  constexpr int kTile = sizeof(T) <= 2 ? 64 : 32;
  constexpr int64_t item = sizeof(T);
  const auto tile = t.shared<T>(kTile * (kTile + 1));
  int64_t offset[2];
  a.matrices.seek(t.block() / a.across / a.down, offset);
  const auto from = t.global<const T>(a.from + offset[1]);
  const auto to = t.global<T>(a.to + offset[0]);
  const int64_t row = t.block() % a.down * kTile, column = t.block() / a.down % a.across * kTile;
  for (int j = t.warp(); j < kTile; j += t.warps())
    for (int i = t.lane(); i < kTile; i += kWarp)
      if (row + i < a.rows && column + j < a.columns)
        tile.store(j * (kTile + 1) + i, from.load(row + i + (column + j) * (a.from_step / item)));
  t.barrier();
  for (int i = t.warp(); i < kTile; i += t.warps())
    for (int j = t.lane(); j < kTile; j += kWarp)
      if (row + i < a.rows && column + j < a.columns)
        to.store((row + i) * (a.to_step / item) + column + j, tile.load(j * (kTile + 1) + i));
}

// Elements of dense operands, four at a time where the wider side has at most 4 bytes.
template <class S, class D>
PLAIT_DEVICE void cast_dense(Thread &t, const CastArgs &a) {
  constexpr int kWide = int(sizeof(S) > sizeof(D) ? sizeof(S) : sizeof(D));
  constexpr int kWidth = kWide <= 4 ? 4 : 2;
  const auto from = t.global<const S>(a.from);
  const auto to = t.global<D>(a.to);
  const int64_t whole = a.n / kWidth;
  for (int64_t i = t.index(); i < whole; i += t.stride()) {
    const auto x = from.template load_vector<kWidth>(i * kWidth);
    Vector<D, kWidth> y;
#pragma unroll
    for (int k = 0; k < kWidth; k++) y.at[k] = convert<D>(x.at[k]);
    to.template store_vector<kWidth>(i * kWidth, y);
  }
  for (int64_t i = whole * kWidth + t.index(); i < a.n; i += t.stride())
    to.store(i, convert<D>(from.load(i)));
}

#define PLAIT_CAST_SOURCES(X) \
  X(bool, Bool)               \
  X(uint8_t, U8)              \
  X(int8_t, I8)               \
  X(uint16_t, U16)            \
  X(int16_t, I16)             \
  X(uint32_t, U32)            \
  X(int32_t, I32)             \
  X(uint64_t, U64) X(int64_t, I64) X(float, F32) X(double, F64) X(Half, F16) X(BFloat, BF16)

template <class D>
PLAIT_DEVICE D load_as(Thread &t, const CastArgs &a, int64_t offset) {
  switch (a.kind) {
#define PLAIT_CAST_FROM(S, k) \
  case core::k: return convert<D>(t.global<const S>(a.from + offset).load(0));
    PLAIT_CAST_SOURCES(PLAIT_CAST_FROM)
    PLAIT_CAST_FROM(Complex64, C64)
    PLAIT_CAST_FROM(Complex128, C128)
#undef PLAIT_CAST_FROM
  }
  return D();
}

template <class D>
PLAIT_DEVICE void cast_to(Thread &t, const CastArgs &a) {
  if constexpr (!scalar::math::is_complex<D>) {
    if (a.is_dense) switch (a.kind) {
#define PLAIT_CAST_FROM(S, k) \
  case core::k: return cast_dense<S, D>(t, a);
        PLAIT_CAST_SOURCES(PLAIT_CAST_FROM)
#undef PLAIT_CAST_FROM
      }
  }
  const auto to = t.global<D>(a.to);
  for (int64_t i = t.index(); i < a.n; i += t.stride()) {
    int64_t offset[2];
    a.walk.seek(i, offset);
    to.store(offset[0] / int64_t(sizeof(D)), load_as<D>(t, a, offset[1]));
  }
}
#endif

PLAIT_DEVICE_KERNEL(copy_strided, CopyArgs, 256, SIZES);
PLAIT_DEVICE_KERNEL(copy_transposed, TransposeArgs, 256, SIZES);
// Signed integers have the bits that unsigned ones get.
#define PLAIT_EACH_CAST_TARGETS(X, ...) \
  X(bool, bool, __VA_ARGS__)            \
  X(u8, uint8_t, __VA_ARGS__)           \
  X(u16, uint16_t, __VA_ARGS__)         \
  X(u32, uint32_t, __VA_ARGS__)         \
  X(u64, uint64_t, __VA_ARGS__)         \
  PLAIT_EACH_FLOATING(X, __VA_ARGS__)   \
  PLAIT_EACH_COMPLEX(X, __VA_ARGS__)
PLAIT_DEVICE_KERNEL(cast_to, CastArgs, 256, CAST_TARGETS);

}  // namespace
}  // namespace plait::cuda

#if PLAIT_HOST
#include "host/copy.h"

namespace plait::cuda {
namespace {

// The dimension along which `from` lies in memory, if it is not that of `to` and both are large
// enough for tiles; -1 if there is none.
int crossed_dimension(const Plan &p, int item) {
  const int last = p.ndim - 1;
  if (p.stride[0][last] != item || p.size[last] < 16) return -1;
  for (int d = 0; d < last; d++)
    if (p.stride[1][d] == item && p.size[d] >= 16) return p.stride[1][last] == item ? -1 : d;
  return -1;
}

plait_status transpose(const plait_call *c, const Plan &p, int d, int item) {
  const int last = p.ndim - 1, tile = item <= 2 ? 64 : 32;
  TransposeArgs a{p.data[0], p.data[1], p.size[d], p.size[last], p.stride[0][d], p.stride[1][last],
                  0,         0,         {}};
  a.across = ceil_div(a.columns, tile), a.down = ceil_div(a.rows, tile);
  Plan rest;
  rest.operands = 2;
  for (int e = 0; e < last; e++) {
    if (e == d) continue;
    rest.size[rest.ndim] = p.size[e];
    rest.numel *= p.size[e];
    for (int k = 0; k < 2; k++) rest.stride[k][rest.ndim] = p.stride[k][e];
    rest.ndim++;
  }
  rest.finish();
  if (!make_walk(rest, &a.matrices)) return too_many_dimensions(c);
  return launch(c, copy_transposed_kernel, instance_of_size(item), a,
                a.across * a.down * rest.numel, 256, int64_t(tile) * (tile + 1) * item);
}

plait_status copy_same(const plait_call *c, const DLTensor *to, const DLTensor *from, int item) {
  Plan p;
  p.add(to, item);
  p.add(from, item);
  p.finish();
  const int items[] = {item, item};
  if (is_dense(p, items)) return copy_bytes(c, p.data[0], p.data[1], p.numel * item);
  const int d = crossed_dimension(p, item);
  if (d >= 0) return transpose(c, p, d, item);
  const int wide = join_elements(&p, item);
  CopyArgs a{p.data[0], p.data[1], p.numel, {}};
  if (!make_walk(p, &a.walk)) return too_many_dimensions(c);
  return launch(c, copy_strided_kernel, instance_of_size(wide), a,
                blocks_for(c, ceil_div(a.n, 4), 256), 256);
}

plait_status cast_elements(const plait_call *c, const DLTensor *to, const DLTensor *from) {
  const Kind k = kind(from->dtype), d = kind(to->dtype);
  if (is_float8(k) || is_float8(d)) return PLAIT_DECLINE;  // moved only; the CPU converts
  Plan p;
  p.add(to, size_of(d));
  p.add(from, size_of(k));
  p.finish();
  const int items[] = {size_of(d), size_of(k)};
  const uintptr_t both =
      reinterpret_cast<uintptr_t>(p.data[0]) | reinterpret_cast<uintptr_t>(p.data[1]);
  CastArgs a{p.data[0], p.data[1], p.numel, int32_t(k), is_dense(p, items) && both % 16 == 0, {}};
  if (!make_walk(p, &a.walk)) return too_many_dimensions(c);
  const Kind bits = d == I8 ? U8 : d == I16 ? U16 : d == I32 ? U32 : d == I64 ? U64 : d;
  return launch(c, cast_to_kernel, bits, a, blocks_for(c, ceil_div(a.n, a.is_dense ? 4 : 1), 256),
                256);
}

bool is_same(const DLTensor *a, const DLTensor *b) {
  if (a->data != b->data || a->ndim != b->ndim) return false;
  for (int d = 0; d < a->ndim; d++)
    if (a->shape[d] != b->shape[d] || (a->shape[d] > 1 && a->strides[d] != b->strides[d]))
      return false;
  return true;
}

plait_status clone(plait_call *c) { return copy_tensor(c, result(c), tensor(c, 0)); }
plait_status copy_(plait_call *c) {
  const DLTensor *from = tensor(c, 1);
  if (from->device.device_type == PLAIT_META && numel(from))
    return PLAIT_FAIL(c, PLAIT_NOT_IMPLEMENTED,
                      "`src` is on the device meta, which has no values to copy");
  return copy_tensor(c, tensor(c, 0), from);
}

PLAIT_KERNEL("cast", clone);
PLAIT_KERNEL("clone", clone);
PLAIT_KERNEL("dense", clone);
PLAIT_KERNEL("copy_", copy_);

}  // namespace

plait_status copy_tensor(const plait_call *c, const DLTensor *to, const DLTensor *from) {
  const Kind k = kind(from->dtype), d = kind(to->dtype);
  if (k == Unknown || d == Unknown) return PLAIT_DECLINE;
  if (numel(to) == 0) return PLAIT_OK;
  if (from->device.device_type == kDLCPU) {
    double parts[2];
    plait_value value;
    read_number(from, &value, parts);
    return fill_tensor(c, to, value);
  }
  if (k != d) return cast_elements(c, to, from);
  if (!is_aligned(to) || !is_aligned(from)) {
    const Parts real_to(to), real_from(from);
    return copy_tensor(c, &real_to.t, &real_from.t);
  }
  return is_same(to, from) ? PLAIT_OK : copy_same(c, to, from, size_of(k));
}

plait_status Operand::take(const plait_call *c, const DLTensor *t) {
  tensor_ = *t;
  return t->device.device_type == kDLCPU || !is_aligned(t) ? take_as(c, t, t->dtype) : PLAIT_OK;
}
plait_status Operand::take_dense(const plait_call *c, const DLTensor *t) {
  return take_as(c, t, t->dtype);
}
plait_status Operand::take_as(const plait_call *c, const DLTensor *t, DLDataType dtype) {
  tensor_ = *t;
  if (t->device.device_type != kDLCPU && is_contiguous(t) && is_aligned(t) &&
      kind(t->dtype) == kind(dtype))
    return PLAIT_OK;
  tensor_.dtype = dtype;
  tensor_.device = c->device;
  tensor_.strides = strides_;
  tensor_.byte_offset = 0;
  dense_strides(t, strides_);
  PLAIT_TRY(space_.take(c, numel(t) * size_of(kind(dtype))));
  tensor_.data = space_.data();
  return copy_tensor(c, &tensor_, t);
}

plait_status DenseResult::allocate(const plait_call *c) {
  tensor_.strides = strides_;
  dense_strides(to_, strides_);
  PLAIT_TRY(space_.take(c, numel(to_) * size_of(kind(to_->dtype))));
  tensor_.data = space_.data();
  return PLAIT_OK;
}
plait_status DenseResult::take(const plait_call *c, const DLTensor *t) {
  tensor_ = *(to_ = t);
  return is_contiguous(t) && is_aligned(t) ? PLAIT_OK : allocate(c);
}
plait_status AlignedTarget::take(const plait_call *c, const DLTensor *t) {
  tensor_ = *(to_ = t);
  if (is_aligned(t)) return PLAIT_OK;
  PLAIT_TRY(allocate(c));
  return copy_tensor(c, &tensor_, t);
}
plait_status DenseResult::finish(const plait_call *c) const {
  return tensor_.data == to_->data ? PLAIT_OK : copy_tensor(c, to_, &tensor_);
}

}  // namespace plait::cuda
#endif
