// Products of matrices: mm, bmm, mv, dot, addmm and linear, and those that other operators ask for.
// Blocks compute tiles of the result; what is long in k and small otherwise is cut along k, and the
// parts are added in order. How is chosen by sizes alone, so each size has its bits.
#include "block/product.h"
#if PLAIT_HOST
#include <utility>

#include "host/cublas.h"
#include "host/dense.h"
#include "host/device.h"
#include "host/product.h"
#endif

#define PLAIT_EACH_PRODUCT(X, ...)   \
  PLAIT_EACH_INEXACT(X, __VA_ARGS__) \
  X(u8, uint8_t, __VA_ARGS__)        \
  X(u16, uint16_t, __VA_ARGS__)      \
  X(u32, uint32_t, __VA_ARGS__)      \
  X(u64, uint64_t, __VA_ARGS__)
#define PLAIT_EACH_LARGE_PRODUCT(X, ...)   \
  X(f32, float, __VA_ARGS__)               \
  X(f16, ::plait::cuda::Half, __VA_ARGS__) \
  X(bf16, ::plait::cuda::BFloat, __VA_ARGS__)

namespace plait::cuda {

struct ProductArgs {
  const void *a, *b, *addend;
  void *c;  // the result, or the sums of parts of k: [part][batch][m][n]
  int64_t batch, m, n, k;
  int64_t a_row, a_column, a_batch, b_row, b_column, b_batch;  // in elements
  int64_t c_row, c_column, c_batch, addend_row, addend_column, addend_batch;
  int64_t depth;  // of k that one block sums
  int64_t parts;
  int32_t a_way, b_way, c_way;
  ProductFactor alpha, beta;
};

struct ProductPartsArgs {
  ProductArgs product;  // c is the result
  const void *sums;  // [part][batch][m][n]
  int64_t parts;
};

// Rows of few-row products that a thread keeps sums of.
constexpr int kFew = 4;

}  // namespace plait::cuda

#if PLAIT_KERNELS
namespace plait::cuda {

template <class E>
PLAIT_DEVICE Sum<E> finish_sum(Thread &t, const ProductArgs &a, Sum<E> sum, int64_t z, int64_t i,
                               int64_t j) {
  using S = Sum<E>;
  S v = factor_as<S>(a.alpha) * sum;
  if (a.addend) {
    const S more = to_sum(t.global<const E>(a.addend).load(z * a.addend_batch + i * a.addend_row +
                                                           j * a.addend_column));
    v = multiply_add(factor_as<S>(a.beta), more, v);
  }
  return v;
}

// Stores one sum of part `part` of k: the result where there is one part.
template <class E>
PLAIT_DEVICE void store_sum(Thread &t, const ProductArgs &a, Sum<E> sum, int64_t part, int64_t z,
                            int64_t i, int64_t j) {
  if (a.parts == 1) {
    t.global<E>(a.c).store(z * a.c_batch + i * a.c_row + j * a.c_column,
                           from_sum<E>(finish_sum<E>(t, a, sum, z, i, j)));
  } else {
    t.global<Sum<E>>(a.c).store(((part * a.batch + z) * a.m + i) * a.n + j, sum);
  }
}

// Stores the sums of a thread: four neighbouring columns at once where the result allows it.
template <class E, int tile, int per>
PLAIT_DEVICE void store_tile(Block &t, const ProductArgs &a, const Sum<E> (&sum)[per][per],
                             int64_t part, int64_t z, int64_t row, int64_t column) {
  constexpr int kV = kVector<E>, kGap = tile / (per / 4);
  const int across = t.thread() % 16, down = t.thread() / 16;
#pragma unroll
  for (int i = 0; i < per; i++) {
    const int64_t x = row + i / 4 * kGap + down * 4 + i % 4;
    if (x >= a.m) continue;
#pragma unroll
    for (int g = 0; g < per; g += kV) {
      const int64_t y = column + g / 4 * kGap + across * 4 + g % 4;
      if (a.parts == 1 && (a.c_way & kByVectors) && y + kV <= a.n) {
        Vector<E, kV> v;
#pragma unroll
        for (int e = 0; e < kV; e++)
          v.at[e] = from_sum<E>(finish_sum<E>(t, a, sum[i][g + e], z, x, y + e));
        t.global<E>(a.c).template store_vector<kV>(z * a.c_batch + x * a.c_row + y, v);
      } else {
#pragma unroll
        for (int e = 0; e < kV; e++)
          if (y + e < a.n) store_sum<E>(t, a, sum[i][g + e], part, z, x, y + e);
      }
    }
  }
}

// Which tile a block computes. Blocks that follow one another share columns of `b` in groups of
// eight rows of tiles, so that the second-level cache holds what they read.
template <int tile>
PLAIT_DEVICE void tile_of_block(const ProductArgs &a, int64_t block, int64_t *row, int64_t *column,
                                int64_t *part, int64_t *z) {
  const int64_t down = (a.m + tile - 1) / tile, across = (a.n + tile - 1) / tile;
  const int64_t in_batch = block % (down * across), rest = block / (down * across);
  const int64_t group = in_batch / (8 * across), left = down - group * 8;
  const int64_t high = left < 8 ? left : 8, within = in_batch - group * 8 * across;
  *row = (group * 8 + within % high) * tile;
  *column = within / high * tile;
  *part = rest % a.parts;
  *z = rest / a.parts;
}

// 256 threads, 16 x 16, each of which has per x per sums.
template <class E, int tile, int per>
PLAIT_DEVICE void product_tile(Block &t, const ProductArgs &a) {
  using S = Sum<E>;
  const auto a_tile = t.template shared<S>(2 * kTileSize<S, tile>);
  const auto b_tile = t.template shared<S>(2 * kTileSize<S, tile>);
  int64_t row, column, part, z;
  tile_of_block<tile>(a, t.block(), &row, &column, &part, &z);
  const int64_t begin = part * a.depth, end = begin + a.depth < a.k ? begin + a.depth : a.k;
  TileSource<E> from_a{t.template global<const E>(static_cast<const E *>(a.a) + z * a.a_batch),
                       row * a.a_row + begin * a.a_column,
                       a.a_row,
                       a.a_column,
                       a.a_way,
                       int(a.m - row < tile ? a.m - row : tile)};
  TileSource<E> from_b{t.template global<const E>(static_cast<const E *>(a.b) + z * a.b_batch),
                       column * a.b_column + begin * a.b_row,
                       a.b_column,
                       a.b_row,
                       a.b_way,
                       int(a.n - column < tile ? a.n - column : tile)};
  S sum[per][per];
  multiply_sources<E, tile, per>(t, a_tile, b_tile, from_a, from_b, int(end - begin), sum);
  store_tile<E, tile, per>(t, a, sum, part, z, row, column);
}

template <class E>
PLAIT_DEVICE void product_large(Block &t, const ProductArgs &a) {
  product_tile<E, kLargeTile, 8>(t, a);
}
template <class E>
PLAIT_DEVICE void product_small(Block &t, const ProductArgs &a) {
  product_tile<E, kSmallTile, 4>(t, a);
}

// One result for each thread, for products of a few thousand multiplications.
template <class E>
PLAIT_DEVICE void product_each(Thread &t, const ProductArgs &a) {
  using S = Sum<E>;
  const auto from_a = t.global<const E>(a.a), from_b = t.global<const E>(a.b);
  for (int64_t at = t.index(); at < a.batch * a.m * a.n; at += t.stride()) {
    const int64_t j = at % a.n, i = at / a.n % a.m, z = at / a.n / a.m;
    const int64_t x = z * a.a_batch + i * a.a_row, y = z * a.b_batch + j * a.b_column;
    S sum = S(0);
#pragma unroll 4
    for (int64_t l = 0; l < a.k; l++)
      sum = multiply_add(to_sum(from_a.load(x + l * a.a_column)),
                         to_sum(from_b.load(y + l * a.b_row)), sum);
    store_sum<E>(t, a, sum, 0, z, i, j);
  }
}

// Few rows of `a`, columns of `b` that lie in memory: a warp for each column.
template <class E>
PLAIT_DEVICE void product_dot(Block &t, const ProductArgs &a) {
  using S = Sum<E>;
  constexpr int kV = kVector<E>;
  const int64_t groups = (a.m + kFew - 1) / kFew, total = a.batch * a.parts * groups * a.n;
  for (int64_t at = t.block() * t.warps() + t.warp(); at < total; at += t.blocks() * t.warps()) {
    const int64_t j = at % a.n, first = at / a.n % groups * kFew;
    const int64_t part = at / a.n / groups % a.parts, z = at / a.n / groups / a.parts;
    const auto from_a =
        t.template global<const E>(static_cast<const E *>(a.a) + z * a.a_batch + first * a.a_row);
    const auto from_b =
        t.template global<const E>(static_cast<const E *>(a.b) + z * a.b_batch + j * a.b_column);
    const int rows = a.m - first < kFew ? int(a.m - first) : kFew;
    const int64_t begin = part * a.depth, end = begin + a.depth < a.k ? begin + a.depth : a.k;
    S sum[kFew];
    for (int i = 0; i < kFew; i++) sum[i] = S(0);
    const bool by_vectors = (a.a_way & kByVectors) && (a.b_way & kByVectors);
    const int64_t step = by_vectors ? kWarp * kV : kWarp;
#pragma unroll 4
    for (int64_t l = begin + t.lane() * (by_vectors ? kV : 1); l < end; l += step) {
      if (by_vectors && l + kV <= end) {
        const auto y = from_b.template load_vector<kV>(l);
#pragma unroll
        for (int i = 0; i < kFew; i++) {
          if (i >= rows) continue;
          const auto x = from_a.template load_vector<kV>(i * a.a_row + l);
#pragma unroll
          for (int e = 0; e < kV; e++)
            sum[i] = multiply_add(to_sum(x.at[e]), to_sum(y.at[e]), sum[i]);
        }
      } else {
        for (int64_t e = l; e < l + (by_vectors ? kV : 1) && e < end; e++)
#pragma unroll
          for (int i = 0; i < kFew; i++)
            if (i < rows)
              sum[i] = multiply_add(to_sum(from_a.load(i * a.a_row + e * a.a_column)),
                                    to_sum(from_b.load(e * a.b_row)), sum[i]);
      }
    }
#pragma unroll
    for (int i = 0; i < kFew; i++) {
      for (int by = kWarp / 2; by > 0; by /= 2) sum[i] = sum[i] + t.shuffle_xor(sum[i], by);
      if (t.lane() == 0 && i < rows) store_sum<E>(t, a, sum[i], part, z, first + i, j);
    }
  }
}

// Few rows of `a`, rows of `b` that lie in memory: a thread for each column of a part of k.
template <class E>
PLAIT_DEVICE void product_columns(Thread &t, const ProductArgs &a) {
  using S = Sum<E>;
  const int64_t groups = (a.m + kFew - 1) / kFew, total = a.batch * a.parts * groups * a.n;
  for (int64_t at = t.index(); at < total; at += t.stride()) {
    const int64_t j = at % a.n, first = at / a.n % groups * kFew;
    const int64_t part = at / a.n / groups % a.parts, z = at / a.n / groups / a.parts;
    const auto from_a =
        t.global<const E>(static_cast<const E *>(a.a) + z * a.a_batch + first * a.a_row);
    const auto from_b =
        t.global<const E>(static_cast<const E *>(a.b) + z * a.b_batch + j * a.b_column);
    const int rows = a.m - first < kFew ? int(a.m - first) : kFew;
    const int64_t begin = part * a.depth, end = begin + a.depth < a.k ? begin + a.depth : a.k;
    S sum[kFew];
    for (int i = 0; i < kFew; i++) sum[i] = S(0);
#pragma unroll 8
    for (int64_t l = begin; l < end; l++) {
      const S y = to_sum(from_b.load(l * a.b_row));
#pragma unroll
      for (int i = 0; i < kFew; i++)
        if (i < rows)
          sum[i] = multiply_add(to_sum(from_a.load(i * a.a_row + l * a.a_column)), y, sum[i]);
    }
#pragma unroll
    for (int i = 0; i < kFew; i++)
      if (i < rows) store_sum<E>(t, a, sum[i], part, z, first + i, j);
  }
}

// Adds the sums of all parts of k, in order.
template <class E>
PLAIT_DEVICE void product_parts(Thread &t, const ProductPartsArgs &args) {
  using S = Sum<E>;
  const ProductArgs &a = args.product;
  const auto from = t.global<const S>(args.sums);
  const int64_t count = a.batch * a.m * a.n;
  for (int64_t at = t.index(); at < count; at += t.stride()) {
    S sum = from.load(at);
#pragma unroll 8
    for (int64_t part = 1; part < args.parts; part++) sum = sum + from.load(part * count + at);
    store_sum<E>(t, a, sum, 0, at / a.n / a.m, at / a.n % a.m, at % a.n);
  }
}

}  // namespace plait::cuda
#endif

namespace plait::cuda {
PLAIT_DEVICE_KERNEL(product_large, ProductArgs, 256, LARGE_PRODUCT);
PLAIT_DEVICE_KERNEL(product_small, ProductArgs, 256, PRODUCT);
PLAIT_DEVICE_KERNEL(product_each, ProductArgs, 256, PRODUCT);
PLAIT_DEVICE_KERNEL(product_dot, ProductArgs, 256, PRODUCT);
PLAIT_DEVICE_KERNEL(product_columns, ProductArgs, 256, PRODUCT);
PLAIT_DEVICE_KERNEL(product_parts, ProductPartsArgs, 256, PRODUCT);
}  // namespace plait::cuda

#if PLAIT_HOST
namespace plait::cuda {
namespace {

int vector_of(int size) { return size <= 4 ? 4 : 16 / size; }

// Whether vectors of elements can be read: those of adjacent elements, at multiples of their size.
bool has_vectors(const void *data, int size, int64_t adjacent, int64_t other, int64_t batch) {
  const int v = vector_of(size);
  return adjacent == 1 && reinterpret_cast<uintptr_t>(data) % uintptr_t(v * size) == 0 &&
         other % v == 0 && batch % v == 0;
}

// How an operand is read whose strides along k and along its other dimension these are.
int32_t way_of(const void *data, int size, int64_t depth, int64_t other, int64_t batch) {
  if (has_vectors(data, size, depth, other, batch)) return kAlongDepth | kByVectors;
  if (has_vectors(data, size, other, depth, batch)) return kByVectors;
  return (depth < 0 ? -depth : depth) < (other < 0 ? -other : other) ? kAlongDepth : 0;
}

ProductFactor factor_of(const plait_value &v) {
  if (v.tag == PLAIT_FLOAT || v.tag == PLAIT_COMPLEX) {
    const double x = v.tag == PLAIT_FLOAT ? v.u.f : v.u.fs[0];
    return {x, v.tag == PLAIT_COMPLEX ? v.u.fs[1] : 0,
            x >= -9.2e18 && x <= 9.2e18 ? int64_t(x) : 0};
  }
  return {double(v.u.i), 0, v.u.i};
}

bool is_zero(const ProductFactor &f) { return f.real == 0 && f.imaginary == 0 && f.integer == 0; }

ProductArgs arguments_of(const MatrixProduct &p) {
  ProductArgs a{};
  a.a = p.a.data, a.b = p.b.data, a.c = p.c, a.addend = p.addend.data;
  a.batch = p.batch, a.m = p.m, a.n = p.n, a.k = p.k;
  a.a_row = p.a.row, a.a_column = p.a.column, a.a_batch = p.a.batch;
  a.b_row = p.b.row, a.b_column = p.b.column, a.b_batch = p.b.batch;
  a.c_row = p.c_row, a.c_column = 1, a.c_batch = p.c_batch;
  a.addend_row = p.addend.row, a.addend_column = p.addend.column;
  a.addend_batch = p.addend.batch;
  a.alpha = factor_of(p.alpha), a.beta = factor_of(p.beta);
  if (is_zero(a.beta)) a.addend = nullptr;
  if (a.m == 1) a.a_row = a.c_row = a.addend_row = 0;
  if (a.n == 1) a.b_column = a.c_column = a.addend_column = 0;
  if (a.k == 1) a.a_column = a.b_row = 0;
  if (a.batch == 1) a.a_batch = a.b_batch = a.c_batch = a.addend_batch = 0;
  a.depth = a.k, a.parts = 1;
  return a;
}

// c^T = b^T a^T
void transpose(ProductArgs *a) {
  std::swap(a->a, a->b), std::swap(a->m, a->n);
  std::swap(a->a_row, a->b_column), std::swap(a->a_column, a->b_row);
  std::swap(a->a_batch, a->b_batch);
  std::swap(a->c_row, a->c_column), std::swap(a->addend_row, a->addend_column);
}

// Cuts k into at most `parts`.
void cut(ProductArgs *a, int64_t parts) {
  if (parts <= 1) return;
  a->depth = ceil_div(ceil_div(a->k, parts), 16) * 16;
  a->parts = ceil_div(a->k, a->depth);
}
int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

// What a choice launches.
struct ProductPlan {
  const DeviceKernel *kernel;
  int64_t blocks, shared;
};

constexpr int64_t kEnoughBlocks = 256, kSingleWork = 1 << 15, kSingleDepth = 512;

// Few rows are a matter of reading memory, which our kernels do as fast.
bool is_for_library(const ProductArgs &a) {
  return a.m > 2 * kFew && a.n > 2 * kFew && a.batch * a.m * a.n * a.k > kSingleWork &&
         !has_setting(PLAIT_SETTING_BATCH_INVARIANT);
}

ProductPlan plan_few(const plait_call *c, ProductArgs *a) {
  const int64_t groups = ceil_div(a->m, kFew) * a->n * a->batch;
  auto size = [](int64_t stride) { return stride < 0 ? -stride : stride; };
  if (size(a->b_row) <= size(a->b_column) || a->n < kWarp) {
    cut(a, least(ceil_div(2048, groups), a->k / 1024));
    return {&product_dot_kernel, blocks_for(c, groups * a->parts, 256 / kWarp), 0};
  }
  cut(a, least(ceil_div(1 << 17, groups), a->k / 64));
  return {&product_columns_kernel, blocks_for(c, groups * a->parts, 256), 0};
}

ProductPlan plan_product(const plait_call *c, Kind k, ProductArgs *a) {
  const int64_t outputs = a->batch * a->m * a->n;
  const bool invariant = has_setting(PLAIT_SETTING_BATCH_INVARIANT);
  if (a->k == 0 || (outputs * a->k <= kSingleWork && a->k <= kSingleDepth))
    return {&product_each_kernel, blocks_for(c, outputs, 256), 0};
  if (!invariant && (a->m <= 2 * kFew || a->n <= 2 * kFew)) {
    if (a->m > a->n) transpose(a);
    return plan_few(c, a);
  }
  const int64_t large = ceil_div(a->m, kLargeTile) * ceil_div(a->n, kLargeTile) * a->batch;
  const bool by_large = (k == F32 || is_half(k)) && a->m > kSmallTile && a->n > kSmallTile &&
                        (large >= kEnoughBlocks / 2 || a->k >= 512);
  const int tile = by_large ? kLargeTile : kSmallTile;
  const int64_t tiles = ceil_div(a->m, tile) * ceil_div(a->n, tile) * a->batch;
  if (!invariant && tiles < kEnoughBlocks / 2)
    cut(a, least(least(ceil_div(kEnoughBlocks, tiles), a->k / 256), 64));
  const int size = k == U8 || k == U16 || is_half(k) ? 4 : size_of(k);
  return {by_large ? &product_large_kernel : &product_small_kernel, tiles * a->parts,
          shared_bytes(tile, size)};
}

}  // namespace

plait_status product(const plait_call *c, const MatrixProduct &p) {
  Kind k = p.kind;
  if (k >= U8 && k <= I64) k = k == I8 ? U8 : k == I16 ? U16 : k == I32 ? U32 : k == I64 ? U64 : k;
  if (k == Bool || k == Unknown) return PLAIT_DECLINE;
  if (p.batch == 0 || p.m == 0 || p.n == 0) return PLAIT_OK;
  ProductArgs a = arguments_of(p);
  if (is_for_library(a)) {
    const plait_status status = product_by_library(c, p);
    if (status != PLAIT_DECLINE) return status;
  }
  const ProductPlan plan = plan_product(c, k, &a);
  const int size = size_of(k), sum_size = size < 4 ? 4 : size;
  a.a_way = way_of(a.a, size, a.a_column, a.a_row, a.a_batch);
  a.b_way = way_of(a.b, size, a.b_row, a.b_column, a.b_batch);
  a.c_way = has_vectors(a.c, size, a.c_column, a.c_row, a.c_batch) ? kByVectors : 0;
  if (plan.kernel == &product_dot_kernel) {  // vectors along k alone
    if (a.a_way != (kAlongDepth | kByVectors)) a.a_way = 0;
    if (a.b_way != (kAlongDepth | kByVectors)) a.b_way = 0;
  }
  if (a.parts == 1) return launch(c, *plan.kernel, k, a, plan.blocks, 256, plan.shared);
  DeviceWorkspace space;
  const int64_t outputs = a.batch * a.m * a.n;
  PLAIT_TRY(space.take(c, a.parts * outputs * sum_size));
  ProductPartsArgs last{a, space.data(), a.parts};
  last.product.parts = 1;
  a.c = space.data();
  PLAIT_TRY(launch(c, *plan.kernel, k, a, plan.blocks, 256, plan.shared));
  return launch(c, product_parts_kernel, k, last, blocks_for(c, outputs, 256), 256);
}

namespace {

MatrixOperand matrix_of(const DLTensor *t) {
  const int d = t->ndim;
  return {t->data, t->strides[d - 2], t->strides[d - 1], d == 3 ? t->strides[0] : 0};
}

plait_status mm(plait_call *c) {
  const DLTensor *a = tensor(c, 0), *b = tensor(c, 1), *out = result(c);
  MatrixProduct p{kind(out->dtype), 1, a->shape[0], b->shape[1], a->shape[1]};
  p.a = matrix_of(a), p.b = matrix_of(b);
  p.c = out->data, p.c_row = p.n;
  return product(c, p);
}

plait_status bmm(plait_call *c) {
  const DLTensor *a = tensor(c, 0), *b = tensor(c, 1), *out = result(c);
  MatrixProduct p{kind(out->dtype), a->shape[0], a->shape[1], b->shape[2], a->shape[2]};
  p.a = matrix_of(a), p.b = matrix_of(b);
  p.c = out->data, p.c_row = p.n, p.c_batch = p.m * p.n;
  return product(c, p);
}

plait_status mv(plait_call *c) {
  const DLTensor *a = tensor(c, 0), *x = tensor(c, 1), *out = result(c);
  MatrixProduct p{kind(out->dtype), 1, a->shape[0], 1, a->shape[1]};
  p.a = matrix_of(a), p.b = {x->data, x->strides[0], 1, 0};
  p.c = out->data, p.c_row = 1;
  return product(c, p);
}

plait_status dot(plait_call *c) {
  const DLTensor *a = tensor(c, 0), *b = tensor(c, 1), *out = result(c);
  MatrixProduct p{kind(out->dtype), 1, 1, 1, a->shape[0]};
  p.a = {a->data, 0, a->strides[0], 0}, p.b = {b->data, b->strides[0], 0, 0};
  p.c = out->data, p.c_row = 1;
  return product(c, p);
}

// The tensor that is added, broadcast to the result. A 0-d tensor of the CPU is copied to `space`.
plait_status addend_of(const plait_call *c, const DLTensor *t, const DLTensor *out,
                       DeviceWorkspace *space, MatrixOperand *to) {
  to->data = t->data;
  const int d = t->ndim;
  if (d > 0 && t->shape[d - 1] == out->shape[out->ndim - 1]) to->column = t->strides[d - 1];
  if (d > 1 && t->shape[d - 2] == out->shape[out->ndim - 2]) to->row = t->strides[d - 2];
  if (t->device.device_type != kDLCPU) return PLAIT_OK;
  const int size = size_of(kind(t->dtype));
  PLAIT_TRY(space->take(c, size));
  to->data = space->data();
  PLAIT_TRY(use(c->thread, c->device));
  PLAIT_CUDA(c->thread, c->device, "copying a number",
             copy_to_device(driver::Address(space->data()), t->data, size_t(size), stream_of(c)));
  return PLAIT_OK;
}

plait_status addmm(plait_call *c) {
  const DLTensor *a = tensor(c, 1), *b = tensor(c, 2), *out = result(c);
  MatrixProduct p{kind(out->dtype), 1, a->shape[0], b->shape[1], a->shape[1]};
  p.a = matrix_of(a), p.b = matrix_of(b);
  p.c = out->data, p.c_row = p.n;
  p.beta = c->in[3], p.alpha = c->in[4];
  DeviceWorkspace space;
  PLAIT_TRY(addend_of(c, tensor(c, 0), out, &space, &p.addend));
  return product(c, p);
}

// The stride of the rows of all leading dimensions as one matrix; false: there is none.
bool flatten(const DLTensor *t, int64_t *stride) {
  int64_t rows = 1;
  *stride = 0;
  for (int d = t->ndim - 2; d >= 0; d--) {
    if (t->shape[d] == 1) continue;
    if (rows == 1) {
      *stride = t->strides[d];
    } else if (t->strides[d] != *stride * rows) {
      return false;
    }
    rows *= t->shape[d];
  }
  return true;
}

plait_status linear(plait_call *c) {
  const DLTensor *x = tensor(c, 0), *w = tensor(c, 1), *bias = tensor(c, 2), *out = result(c);
  const int64_t n = w->shape[0], k = w->shape[1];
  if (numel(out) == 0) return PLAIT_OK;
  MatrixProduct p{kind(out->dtype), 1, numel(out) / n, n, k};
  DeviceWorkspace space;
  p.a = {x->data, 0, x->strides[x->ndim - 1], 0};
  if (!flatten(x, &p.a.row)) {
    PLAIT_TRY(make_dense(c, x, &space, &p.a.data));
    p.a.row = k, p.a.column = 1;
  }
  p.b = {w->data, w->strides[1], w->strides[0], 0};
  p.c = out->data, p.c_row = n;
  if (bias) p.addend = {bias->data, 0, bias->strides[0], 0};
  return product(c, p);
}

PLAIT_KERNEL("mm", mm);
PLAIT_KERNEL("mv", mv);
PLAIT_KERNEL("dot", dot);
PLAIT_KERNEL("bmm", bmm);
PLAIT_KERNEL("addmm", addmm);
PLAIT_KERNEL("linear", linear);

}  // namespace
}  // namespace plait::cuda
#endif
