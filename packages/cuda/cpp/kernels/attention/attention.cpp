// Attention in blocks (Dao et al. 2022): 64 x 64 scores at a time, which are never stored as a
// whole. The forward pass keeps the logarithm of each row's sum of exponentials, from which the
// backward pass computes the weights again: one kernel sums for keys, another one for queries, so
// no sum depends on the order of blocks.
#include "block/product.h"
#include "host/walk.h"
#if PLAIT_HOST
#include "host/copy.h"
#endif

namespace plait::cuda {

enum : int { kQuery, kKey, kValue, kMask, kOutput, kGrad, kByQuery, kByKey, kByValue, kOperands };
enum MaskKind : int32_t { kNoMask, kBoolMask, kAddedMask };

struct AttentionArgs {
  void *data[kOperands];
  // of the last two dimensions, in elements; for kAlongDepth how rows are read
  int64_t row[kOperands], column[kOperands];
  int32_t by_rows[kOperands], by_columns[kOperands];
  Walk<kOperands> heads;  // byte offsets of each head
  void *lse, *means;      // of each row, dense
  int64_t count, queries, keys, width, values;
  MaskKind mask;
  int32_t is_causal;
  double scale;
};

constexpr int kScores = kSmallTile;  // queries, or keys, of a block

// Bytes of shared memory for sums of `size` bytes: slices of operands, and a tile of weights.
constexpr int64_t attention_bytes(int size, int wide) {
  const int64_t depth = size >= 16 ? 8 : 16, gap = 16 / size;
  return size * (2 * depth * ((kScores + gap) + (wide + gap)) + kScores * (kScores + gap));
}

#if PLAIT_KERNELS

// What a block works on: the operands of a head.
template <class E>
struct Head {
  using S = Sum<E>;
  Thread &t;
  const AttentionArgs &a;
  int64_t number, offset[kOperands];

  PLAIT_DEVICE Head(Thread &thread, const AttentionArgs &args, int64_t head)
      : t(thread), a(args), number(head) {
    a.heads.seek(head, offset);
  }
  template <class T = E>
  PLAIT_DEVICE Global<T> of(int which) const {
    return t.global<T>(static_cast<char *>(a.data[which]) + offset[which]);
  }
  // Rows from `first` on, of `rows` in all, as the dimension of a tile that is not k.
  PLAIT_DEVICE TileSource<E> rows(int which, int64_t first, int64_t count) const {
    return {of<const E>(which), first * a.row[which], a.row[which],
            a.column[which],    a.by_rows[which],     left(first, count, kScores)};
  }
  static PLAIT_DEVICE int left(int64_t first, int64_t count, int tile) {
    return int(count - first < tile ? count - first : tile);
  }
  PLAIT_DEVICE int64_t end_of_keys(int64_t last_query) const {
    return a.is_causal && last_query + 1 < a.keys ? last_query + 1 : a.keys;
  }
  // The score of a pair, from the product of its rows.
  PLAIT_DEVICE S score(S product, int64_t i, int64_t j) const {
    const S nothing = -S(__builtin_huge_val());
    if (j >= a.keys || i >= a.queries || (a.is_causal && j > i)) return nothing;
    const S x = product * S(a.scale);
    const int64_t at = i * a.row[kMask] + j * a.column[kMask];
    if (a.mask == kBoolMask) return of<const uint8_t>(kMask).load(at) ? x : nothing;
    if (a.mask == kAddedMask) return x + to_sum(of<const E>(kMask).load(at));
    return x;
  }
};

// sum += the transposed tile of weights times rows [first, first + count) of an operand: weights
// [row][64], results 4 x (wide / 16) for each thread.
template <class E, int wide>
PLAIT_DEVICE void add_weighted(Block &t, const Head<E> &h, const Shared<Sum<E>> &weights,
                               const Shared<Sum<E>> &slices, int which, int64_t first,
                               int64_t columns, int left, Sum<E> (&sum)[4][wide / 16]) {
  using S = Sum<E>;
  const AttentionArgs &a = h.a;
  TileSource<E> from{
      h.template of<const E>(which), first * a.row[which], a.column[which], a.row[which],
      a.by_columns[which],           int(columns)};
  int slice = 0;
  t.barrier();
  for (int l = 0; l < left; l += kDepth<S>, slice ^= 1) {
    TilePart<E, wide> part;
    part.load(t, from, left - l);
    part.store(t, slices, slice * kTileSize<S, wide>, from.way);
    from.first += kDepth<S> * from.l_stride;
    t.barrier();
#pragma unroll 4
    for (int d = 0; d < kDepth<S>; d++) {
      S x[4], y[wide / 16];
      tile_row<S, kScores, 4>(weights, 0, l + d, t.thread() / 16, x);
      tile_row<S, wide, wide / 16>(slices, slice * kTileSize<S, wide>, d, t.thread() % 16, y);
#pragma unroll
      for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < wide / 16; j++) sum[i][j] = multiply_add(x[i], y[j], sum[i][j]);
    }
  }
}

// The column of a thread's j-th result, as tile_row reads them.
PLAIT_DEVICE int column_of(Block &t, int j) { return j / 4 * 64 + t.thread() % 16 * 4 + j % 4; }

template <class E, int wide>
PLAIT_DEVICE void store_rows(Block &t, const Head<E> &h, int which, int64_t first, int64_t count,
                             int64_t columns, const Sum<E> (&sum)[4][wide / 16],
                             const Sum<E> (&factor)[4]) {
  const auto to = h.template of<E>(which);
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const int64_t row = first + t.thread() / 16 * 4 + i;
    if (row >= count) continue;
#pragma unroll
    for (int j = 0; j < wide / 16; j++) {
      const int column = column_of(t, j);
      if (column < columns)
        to.store(row * h.a.row[which] + column * h.a.column[which],
                 from_sum<E>(sum[i][j] * factor[i]));
    }
  }
}

template <class S>
PLAIT_DEVICE S largest_of_row(Block &t, S v) {  // among the 16 threads that share a row
  for (int by = 8; by > 0; by /= 2) {
    const S other = t.shuffle_xor(v, by);
    v = other > v ? other : v;
  }
  return v;
}
template <class S>
PLAIT_DEVICE S sum_of_row(Block &t, S v) {
  for (int by = 8; by > 0; by /= 2) v = v + t.shuffle_xor(v, by);
  return v;
}

// Turns the scores of a tile into weights; the sums so far are scaled to the new largest scores.
template <class E, int wide>
PLAIT_DEVICE void absorb_scores(Block &t, const Head<E> &h, const Shared<Sum<E>> &weights,
                                int64_t first, int64_t begin, Sum<E> (&score)[4][4],
                                Sum<E> (&top)[4], Sum<E> (&total)[4], Sum<E> (&out)[4][wide / 16]) {
  using S = Sum<E>;
  const int down = t.thread() / 16, across = t.thread() % 16;
  const S nothing = -S(__builtin_huge_val());
#pragma unroll
  for (int i = 0; i < 4; i++) {
    S best = nothing;
#pragma unroll
    for (int j = 0; j < 4; j++) {
      score[i][j] = h.score(score[i][j], first + down * 4 + i, begin + across * 4 + j);
      best = score[i][j] > best ? score[i][j] : best;
    }
    best = largest_of_row(t, best);
    const S now = best > top[i] ? best : top[i], shift = now == nothing ? S(0) : now;
    const S shrink = scalar::math::exp(top[i] - shift);
    top[i] = now;
    total[i] = total[i] * shrink;
#pragma unroll
    for (int j = 0; j < wide / 16; j++) out[i][j] = out[i][j] * shrink;
#pragma unroll
    for (int j = 0; j < 4; j++) {
      const S weight = scalar::math::exp(score[i][j] - shift);
      total[i] = total[i] + weight;
      weights.store((across * 4 + j) * kPitch<S, kScores> + down * 4 + i, weight);
    }
  }
}

// A block for 64 queries of a head.
template <class E, int wide>
PLAIT_DEVICE void attention_rows(Block &t, const AttentionArgs &a) {
  using S = Sum<E>;
  const auto queries = t.template shared<S>(2 * kTileSize<S, kScores>);
  const auto slices = t.template shared<S>(2 * kTileSize<S, wide>);
  const auto weights = t.template shared<S>(kScores * kPitch<S, kScores>);
  const int64_t blocks = (a.queries + kScores - 1) / kScores;
  const int64_t first = t.block() % blocks * kScores;
  const Head<E> h(t, a, t.block() / blocks);
  const int down = t.thread() / 16, across = t.thread() % 16;
  const S nothing = -S(__builtin_huge_val());
  S out[4][wide / 16], top[4], total[4], score[4][4];
#pragma unroll
  for (int i = 0; i < 4; i++) {
    top[i] = nothing, total[i] = S(0);
#pragma unroll
    for (int j = 0; j < wide / 16; j++) out[i][j] = S(0);
  }
  const int64_t last = first + kScores < a.queries ? first + kScores : a.queries;
  const int64_t end = h.end_of_keys(last - 1);
  for (int64_t begin = 0; begin < end; begin += kScores) {
    t.barrier();  // all have read the weights and slices of the keys before
    multiply_sources<E, kScores, 4>(t, queries, slices, h.rows(kQuery, first, a.queries),
                                    h.rows(kKey, begin, a.keys), int(a.width), score);
    absorb_scores<E, wide>(t, h, weights, first, begin, score, top, total, out);
    add_weighted<E, wide>(t, h, weights, slices, kValue, begin, a.values,
                          Head<E>::left(begin, a.keys, kScores), out);
  }
  S factor[4];
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const S sum = sum_of_row(t, total[i]);
    const bool is_blind = sum == S(0);  // no key counts
    factor[i] = is_blind ? S(0) : S(1) / sum;
    const int64_t row = first + down * 4 + i;
    if (across == 0 && row < a.queries)
      t.template global<S>(a.lse).store(
          h.number * a.queries + row,
          is_blind ? S(__builtin_huge_val()) : top[i] + scalar::math::log(sum));
  }
  store_rows<E, wide>(t, h, kOutput, first, a.queries, a.values, out, factor);
}

template <class E>
PLAIT_DEVICE void attention_narrow(Block &t, const AttentionArgs &a) {
  attention_rows<E, 64>(t, a);
}
template <class E>
PLAIT_DEVICE void attention_wide(Block &t, const AttentionArgs &a) {
  attention_rows<E, 128>(t, a);
}

// The mean of a row's gradients of weights, sum(grad * output): a warp for each row.
template <class E>
PLAIT_DEVICE void attention_means(Block &t, const AttentionArgs &a) {
  using S = Sum<E>;
  const int64_t total = a.count * a.queries;
  for (int64_t at = t.block() * t.warps() + t.warp(); at < total; at += t.blocks() * t.warps()) {
    const Head<E> h(t, a, at / a.queries);
    const int64_t i = at % a.queries;
    const auto output = h.template of<const E>(kOutput), grad = h.template of<const E>(kGrad);
    S sum = S(0);
    for (int64_t j = t.lane(); j < a.values; j += kWarp)
      sum = multiply_add(to_sum(output.load(i * a.row[kOutput] + j * a.column[kOutput])),
                         to_sum(grad.load(i * a.row[kGrad] + j * a.column[kGrad])), sum);
    for (int by = kWarp / 2; by > 0; by /= 2) sum = sum + t.shuffle_xor(sum, by);
    if (t.lane() == 0) t.template global<S>(a.means).store(at, sum);
  }
}

// The weight of a pair; its gradient of a score becomes that of the score.
template <class E>
PLAIT_DEVICE Sum<E> weight_of(Thread &t, const Head<E> &h, Sum<E> product, int64_t i, int64_t j,
                              Sum<E> *gradient) {
  using S = Sum<E>;
  const S score = h.score(product, i, j);
  if (i >= h.a.queries || j >= h.a.keys) return *gradient = S(0);
  const int64_t row = h.number * h.a.queries + i;
  const S weight = scalar::math::exp(score - t.global<const S>(h.a.lse).load(row));
  *gradient = weight * (*gradient - t.global<const S>(h.a.means).load(row));
  return weight;
}

// A block for 64 keys of a head: the gradients of keys and values.
template <class E, int wide>
PLAIT_DEVICE void attention_by_keys(Block &t, const AttentionArgs &a) {
  using S = Sum<E>;
  const auto keys = t.template shared<S>(2 * kTileSize<S, kScores>);
  const auto slices = t.template shared<S>(2 * kTileSize<S, wide>);
  const auto weights = t.template shared<S>(kScores * kPitch<S, kScores>);
  const int64_t blocks = (a.keys + kScores - 1) / kScores;
  const int64_t begin = t.block() % blocks * kScores;
  const Head<E> h(t, a, t.block() / blocks);
  const int down = t.thread() / 16, across = t.thread() % 16;
  S by_key[4][wide / 16], by_value[4][wide / 16], weight[4][4], gradient[4][4];
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int j = 0; j < wide / 16; j++) by_key[i][j] = by_value[i][j] = S(0);
  // queries before the block's first key do not see it
  for (int64_t first = a.is_causal ? begin : 0; first < a.queries; first += kScores) {
    const int left = Head<E>::left(first, a.queries, kScores);
    t.barrier();
    multiply_sources<E, kScores, 4>(t, keys, slices, h.rows(kKey, begin, a.keys),
                                    h.rows(kQuery, first, a.queries), int(a.width), weight);
    t.barrier();
    multiply_sources<E, kScores, 4>(t, keys, slices, h.rows(kValue, begin, a.keys),
                                    h.rows(kGrad, first, a.queries), int(a.values), gradient);
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
      for (int j = 0; j < 4; j++) {
        weight[i][j] = weight_of<E>(t, h, weight[i][j], first + across * 4 + j,
                                    begin + down * 4 + i, &gradient[i][j]);
        weights.store((across * 4 + j) * kPitch<S, kScores> + down * 4 + i, weight[i][j]);
      }
    add_weighted<E, wide>(t, h, weights, slices, kGrad, first, a.values, left, by_value);
    t.barrier();
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
      for (int j = 0; j < 4; j++)
        weights.store((across * 4 + j) * kPitch<S, kScores> + down * 4 + i, gradient[i][j]);
    add_weighted<E, wide>(t, h, weights, slices, kQuery, first, a.width, left, by_key);
  }
  const S one[4] = {S(1), S(1), S(1), S(1)}, s = S(a.scale), scale[4] = {s, s, s, s};
  store_rows<E, wide>(t, h, kByKey, begin, a.keys, a.width, by_key, scale);
  store_rows<E, wide>(t, h, kByValue, begin, a.keys, a.values, by_value, one);
}

// A block for 64 queries of a head: their gradients.
template <class E, int wide>
PLAIT_DEVICE void attention_by_queries(Block &t, const AttentionArgs &a) {
  using S = Sum<E>;
  const auto queries = t.template shared<S>(2 * kTileSize<S, kScores>);
  const auto slices = t.template shared<S>(2 * kTileSize<S, wide>);
  const auto weights = t.template shared<S>(kScores * kPitch<S, kScores>);
  const int64_t blocks = (a.queries + kScores - 1) / kScores;
  const int64_t first = t.block() % blocks * kScores;
  const Head<E> h(t, a, t.block() / blocks);
  const int down = t.thread() / 16, across = t.thread() % 16;
  S by_query[4][wide / 16], weight[4][4], gradient[4][4];
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int j = 0; j < wide / 16; j++) by_query[i][j] = S(0);
  const int64_t last = first + kScores < a.queries ? first + kScores : a.queries;
  const int64_t end = h.end_of_keys(last - 1);
  for (int64_t begin = 0; begin < end; begin += kScores) {
    t.barrier();
    multiply_sources<E, kScores, 4>(t, queries, slices, h.rows(kQuery, first, a.queries),
                                    h.rows(kKey, begin, a.keys), int(a.width), weight);
    t.barrier();
    multiply_sources<E, kScores, 4>(t, queries, slices, h.rows(kGrad, first, a.queries),
                                    h.rows(kValue, begin, a.keys), int(a.values), gradient);
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
      for (int j = 0; j < 4; j++) {
        weight_of<E>(t, h, weight[i][j], first + down * 4 + i, begin + across * 4 + j,
                     &gradient[i][j]);
        weights.store((across * 4 + j) * kPitch<S, kScores> + down * 4 + i, gradient[i][j]);
      }
    add_weighted<E, wide>(t, h, weights, slices, kKey, begin, a.width,
                          Head<E>::left(begin, a.keys, kScores), by_query);
  }
  const S s = S(a.scale), scale[4] = {s, s, s, s};
  store_rows<E, wide>(t, h, kByQuery, first, a.queries, a.width, by_query, scale);
}

template <class E>
PLAIT_DEVICE void attention_by_keys_narrow(Block &t, const AttentionArgs &a) {
  attention_by_keys<E, 64>(t, a);
}
template <class E>
PLAIT_DEVICE void attention_by_keys_wide(Block &t, const AttentionArgs &a) {
  attention_by_keys<E, 128>(t, a);
}
template <class E>
PLAIT_DEVICE void attention_by_queries_narrow(Block &t, const AttentionArgs &a) {
  attention_by_queries<E, 64>(t, a);
}
template <class E>
PLAIT_DEVICE void attention_by_queries_wide(Block &t, const AttentionArgs &a) {
  attention_by_queries<E, 128>(t, a);
}
#endif

PLAIT_DEVICE_TILE_KERNEL(attention_narrow, AttentionArgs, 256, FLOATING);
PLAIT_DEVICE_TILE_KERNEL(attention_wide, AttentionArgs, 256, FLOATING);
PLAIT_DEVICE_KERNEL(attention_means, AttentionArgs, 256, FLOATING);
PLAIT_DEVICE_TILE_KERNEL(attention_by_keys_narrow, AttentionArgs, 256, FLOATING);
PLAIT_DEVICE_TILE_KERNEL(attention_by_keys_wide, AttentionArgs, 256, FLOATING);
PLAIT_DEVICE_TILE_KERNEL(attention_by_queries_narrow, AttentionArgs, 256, FLOATING);
PLAIT_DEVICE_TILE_KERNEL(attention_by_queries_wide, AttentionArgs, 256, FLOATING);

#if PLAIT_HOST
namespace {

// Describes operand `which`, broadcast to the leading dimensions, rows and columns of `like`.
void set_operand(AttentionArgs *a, int which, const DLTensor *t, int64_t rows, int64_t columns,
                 int size) {
  const int d = t->ndim;
  a->data[which] = t->data;
  a->row[which] = d > 1 && t->shape[d - 2] == rows ? t->strides[d - 2] : 0;
  a->column[which] = d > 0 && t->shape[d - 1] == columns ? t->strides[d - 1] : 0;
  const int lead = a->heads.dims;
  for (int i = 0; i < lead; i++) {  // the innermost one first
    const int at = d - 3 - i;
    const bool moves = at >= 0 && t->shape[at] != 1;
    a->heads.stride[i][which] = moves ? t->strides[at] * size : 0;
  }
}

// How rows are read along their columns, and columns along the rows: vectors where all heads and
// rows begin at a multiple of their size.
void set_ways(AttentionArgs *a, int size) {
  const int v = size <= 4 ? 4 : 16 / size;
  for (int which = 0; which < kOperands; which++) {
    bool even = reinterpret_cast<uintptr_t>(a->data[which]) % uintptr_t(v * size) == 0 &&
                a->row[which] % v == 0;
    for (int i = 0; i < a->heads.dims; i++)
      even = even && a->heads.stride[i][which] % (v * size) == 0;
    const bool by_vectors = even && a->column[which] == 1;
    a->by_rows[which] = by_vectors ? kAlongDepth | kByVectors : kAlongDepth;
    a->by_columns[which] = by_vectors ? kByVectors : 0;
  }
}

// The sizes, heads and operands of a call whose query, key and value begin at argument `at`; `mask`
// may hold a copy of the mask.
plait_status arguments_of(const plait_call *c, int at, AttentionArgs *a, Operand *mask) {
  const DLTensor *q = tensor(c, at), *k = tensor(c, at + 1), *v = tensor(c, at + 2);
  const int d = q->ndim, size = size_of(kind(q->dtype));
  a->queries = q->shape[d - 2], a->keys = k->shape[d - 2];
  a->width = q->shape[d - 1], a->values = v->shape[d - 1];
  a->count = 1;
  const bool is_wide = a->width > 64 || a->values > 64;
  const int64_t bytes = attention_bytes(kind(q->dtype) == F64 ? 8 : 4, is_wide ? 128 : 64);
  if (d - 2 > kWalkDims || a->width > 128 || a->values > 128 ||
      bytes > facts(c->device.device_id).shared_memory)
    return PLAIT_DECLINE;
  a->heads.dims = d - 2;
  for (int i = 0; i < d - 2; i++) {
    a->heads.size[i] = q->shape[d - 3 - i];
    a->count *= a->heads.size[i];
    if (a->heads.size[i]) a->heads.by[i] = divider(a->heads.size[i]);
  }
  set_operand(a, kQuery, q, a->queries, a->width, size);
  set_operand(a, kKey, k, a->keys, a->width, size);
  set_operand(a, kValue, v, a->keys, a->values, size);
  if (const DLTensor *given = tensor(c, at + 3)) {
    PLAIT_TRY(mask->take(c, given));
    const bool is_bool = kind(given->dtype) == Bool;
    set_operand(a, kMask, mask->tensor(), a->queries, a->keys, is_bool ? 1 : size);
    a->mask = is_bool ? kBoolMask : kAddedMask;
  }
  return PLAIT_OK;
}

struct AttentionKernels {
  const DeviceKernel &narrow, &wide;
};

plait_status launch_attention(const plait_call *c, const AttentionKernels &kernels, Kind k,
                              const AttentionArgs &a, int64_t rows) {
  const bool is_wide = a.width > 64 || a.values > 64;
  const int64_t bytes = attention_bytes(k == F64 ? 8 : 4, is_wide ? 128 : 64);
  return launch(c, is_wide ? kernels.wide : kernels.narrow, k, a, a.count * ceil_div(rows, kScores),
                256, bytes);
}

// attention_forward(query, key, value, mask, is_causal, scale) -> output, lse
plait_status attention_forward(plait_call *c) {
  AttentionArgs a{};
  Operand mask;
  PLAIT_TRY(arguments_of(c, 0, &a, &mask));
  if (a.count == 0 || a.queries == 0) return PLAIT_OK;
  const DLTensor *out = result(c);
  const Kind k = kind(out->dtype);
  set_operand(&a, kOutput, out, a.queries, a.values, size_of(k));
  set_ways(&a, size_of(k));
  a.lse = result(c, 1)->data, a.is_causal = integer(c, 4) != 0, a.scale = real(c, 5);
  return launch_attention(c, {attention_narrow_kernel, attention_wide_kernel}, k, a, a.queries);
}

// attention_backward(grad, query, key, value, mask, output, lse, is_causal, scale) -> by query,
// key, value
plait_status attention_backward(plait_call *c) {
  AttentionArgs a{};
  Operand mask, lse;
  PLAIT_TRY(arguments_of(c, 1, &a, &mask));
  const Kind k = kind(result(c)->dtype);
  const int size = size_of(k);
  set_operand(&a, kGrad, tensor(c, 0), a.queries, a.values, size);
  set_operand(&a, kOutput, tensor(c, 5), a.queries, a.values, size);
  set_operand(&a, kByQuery, result(c), a.queries, a.width, size);
  set_operand(&a, kByKey, result(c, 1), a.keys, a.width, size);
  set_operand(&a, kByValue, result(c, 2), a.keys, a.values, size);
  set_ways(&a, size);
  a.is_causal = integer(c, 7) != 0, a.scale = real(c, 8);
  if (a.count == 0) return PLAIT_OK;
  DeviceWorkspace means;
  PLAIT_TRY(lse.take_as(c, tensor(c, 6), DLDataType{kDLFloat, uint8_t(k == F64 ? 64 : 32), 1}));
  a.lse = const_cast<void *>(lse.data());
  PLAIT_TRY(means.take(c, a.count * a.queries * (k == F64 ? 8 : 4)));
  a.means = means.data();
  PLAIT_TRY(launch(c, attention_means_kernel, k, a, blocks_for(c, a.count * a.queries * kWarp, 256),
                   256));
  PLAIT_TRY(launch_attention(c, {attention_by_keys_narrow_kernel, attention_by_keys_wide_kernel}, k,
                             a, a.keys));
  return launch_attention(c, {attention_by_queries_narrow_kernel, attention_by_queries_wide_kernel},
                          k, a, a.queries);
}

PLAIT_KERNEL("attention_forward", attention_forward);
PLAIT_KERNEL("attention_backward", attention_backward);

}  // namespace
#endif

}  // namespace plait::cuda
