// Attention in blocks (Dao et al. 2022): scores are computed tile by tile and never held as a
// whole. The forward pass keeps the logarithm of each row's sum of exponentials, from which the
// backward pass computes the weights again.
#include "kernels/dense.h"
#include "kernels/exp_rows.h"
#include "kernels/reduce.h"
#include "kernels/tile.h"

namespace plait::core {
namespace {

constexpr int64_t kQueries = 96, kKeys = 128;  // a block of scores
constexpr int64_t kStride = kKeys + 16;  // of its rows, which would else share sets of the cache
constexpr int64_t kUnits = 16;  // keys of few heads are cut into ranges until there are so many
constexpr int64_t kFew = 4, kMany = 256;  // queries for which packing so many keys does not pay
constexpr int64_t kWork = 1 << 18;  // multiplications that are worth a claim

int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
// Bytes of heads x rows x columns elements; more than any memory where that overflows.
uint64_t room(int64_t heads, int64_t rows, int64_t columns, size_t item) {
  const unsigned __int128 n = (unsigned __int128)uint64_t(heads) * uint64_t(rows);
  const unsigned __int128 limit = uint64_t(1) << 60,
                          bytes = n > limit ? limit : n * uint64_t(columns) * item;
  return bytes > limit ? uint64_t(limit) : bytes < 64 ? 64 : uint64_t(bytes);
}

// The leading dimensions as one, and the strides of the matrices in the last two.
struct Heads {
  Axes lead;
  int64_t rows, columns;
  explicit Heads(const DLTensor *t) : Heads(t, t) {}
  // Of a tensor that is broadcast to the leading dimensions of `to` and `rows` by `columns`.
  Heads(const DLTensor *t, const DLTensor *to) {
    const int skip = to->ndim - t->ndim;
    auto stride = [&](int d) {
      return d < skip || t->shape[d - skip] == 1 ? int64_t(0) : t->strides[d - skip];
    };
    for (int d = 0; d < to->ndim - 2; d++) lead.push(to->shape[d], stride(d));
    rows = stride(to->ndim - 2);
    columns = stride(to->ndim - 1);
  }
  template <class T>
  Matrix<T> of(const DLTensor *t, int64_t n) const {
    return {data<T>(t) + lead.offset(n), rows, columns};
  }
};

struct Sizes {
  int64_t heads, queries, keys, width, values;  // N, L, S, E, Ev
  Sizes(const DLTensor *q, const DLTensor *k, const DLTensor *v)
      : heads(1),
        queries(q->shape[q->ndim - 2]),
        keys(k->shape[k->ndim - 2]),
        width(q->shape[q->ndim - 1]),
        values(v->shape[v->ndim - 1]) {
    for (int d = 0; d < q->ndim - 2; d++) heads *= q->shape[d];
  }
};

// Which scores count, and what is added to them.
template <class T>
struct Mask {
  const DLTensor *t;
  Heads heads;
  bool causal, is_bool;
  Mask(const DLTensor *mask, const DLTensor *q, bool is_causal)
      : t(mask),
        heads(mask ? mask : q, q),
        causal(is_causal),
        is_bool(mask && kind(mask->dtype) == Bool) {}
  // Keys from this one on do not count for query i and those before it.
  int64_t end(int64_t i, int64_t keys) const { return causal ? least(keys, i + 1) : keys; }

  // Scores of query i and keys [begin, begin + n); the rest of kKeys is -inf.
  void apply(T *x, int64_t head, int64_t i, int64_t begin, int64_t n) const {
    if (t && is_bool) {
      const bool *m = data<bool>(t) + at(head, i, begin);
      for (int64_t j = 0; j < n; j++) x[j] = m[j * heads.columns] ? x[j] : -T(math::kInf);
    } else if (t) {
      const T *m = data<T>(t) + at(head, i, begin);
      if (heads.columns == 1)
        for (int64_t j = 0; j < n; j++) x[j] += m[j];
      else
        for (int64_t j = 0; j < n; j++) x[j] += m[j * heads.columns];
    }
    const int64_t seen = end(i, begin + n) - begin;
    for (int64_t j = seen < 0 ? 0 : seen; j < kKeys; j++) x[j] = -T(math::kInf);
  }

 private:
  int64_t at(int64_t head, int64_t i, int64_t j) const {
    return heads.lead.offset(head) + i * heads.rows + j * heads.columns;
  }
};

// A head's rows without gaps, padded to whole panels: its own memory where it is so already.
template <class T>
class PaddedRows {
 public:
  plait_status take(const plait_call *c, const DLTensor *t, int64_t heads, int64_t n,
                    int64_t columns, T factor) {
    t_ = t;
    n_ = n;
    columns_ = columns;
    width_ = padded(columns);
    factor_ = factor;
    own_ = factor == T(1) && heads_.columns == 1 && heads_.rows == width_ && columns == width_;
    return own_ ? PLAIT_OK : space_.take(c, room(heads, n, width_, sizeof(T)));
  }
  explicit PaddedRows(const DLTensor *t) : heads_(t) {}
  void fill(int64_t head) const {
    if (!own_)
      pack_rows(heads_.of<T>(t_, head), n_, columns_, width_, factor_,
                space_.template as<T>() + head * n_ * width_);
  }
  const T *rows(int64_t head, int64_t i) const {
    return (own_ ? data<T>(t_) + heads_.lead.offset(head)
                 : space_.template as<T>() + head * n_ * width_) +
           i * width_;
  }
  int64_t width() const { return width_; }

 private:
  const DLTensor *t_ = nullptr;
  Heads heads_;
  int64_t n_ = 0, columns_ = 0, width_ = 0;
  T factor_ = T(1);
  bool own_ = false;
  Workspace space_;
};

template <class T>
void write_rows(const T *from, int64_t width, int64_t rows, int64_t columns, T factor,
                Matrix<T> to) {
  for (int64_t i = 0; i < rows; i++) {
    T *out = const_cast<T *>(to.data) + i * to.rows;
    for (int64_t j = 0; j < columns; j++) out[j * to.columns] = from[i * width + j] * factor;
  }
}

// f(unit, memory of `size` elements) for each unit of about `work` multiplications.
template <class T, class F>
plait_status each_unit(const plait_call *c, int64_t units, int64_t work, int64_t size, F &&f) {
  bool failed = false;
  parallel_ranges(c, units, kWork / (work + 1) + 1, [&](int64_t begin, int64_t end) {
    Workspace space;
    if (!space.try_take(c, uint64_t(size) * sizeof(T)))
      return __atomic_store_n(&failed, true, __ATOMIC_RELAXED);
    for (int64_t i = begin; i < end; i++) f(i, space.as<T>());
  });
  return failed ? Workspace::out_of_memory(c, uint64_t(size) * sizeof(T)) : PLAIT_OK;
}

// ---- forward
// -------------------------------------------------------------------------------------

// What a row knows of the keys it has seen: the largest score, and the sum of exponentials beside
// it.
template <class T>
struct Seen {
  T top, sum;
};

// Makes exponentials of a row of scores; the results so far are scaled to the new largest score.
template <class T>
void absorb(T *x, Seen<T> *seen, T *out, int64_t width) {
  const T block = largest(x, kKeys), top = seen->top > block ? seen->top : block;
  const T shift = top == -T(math::kInf) ? T(0) : top;  // nothing seen yet
  exp_row(x, shift, kKeys, x);
  const T scale = math::exp(seen->top - shift);
  if (scale != T(1))
    for (int64_t j = 0; j < width; j++) out[j] *= scale;
  *seen = {top, seen->sum * scale + total(x, kKeys)};
}

template <class T>
class Forward {
 public:
  Forward(const plait_call *c, const Sizes &s)
      : c_(c),
        s_(s),
        query_(tensor(c, 0)),
        key_(tensor(c, 1)),
        value_rows_(tensor(c, 2)),
        result_(result(c)),
        mask_(tensor(c, 3), tensor(c, 0), integer(c, 4) != 0) {}

  plait_status run() {
    const int64_t blocks = ceil_div(s_.queries, kQueries), width = padded(s_.values);
    key_width_ = ceil_div(s_.keys, kPanel<T>) * kPanel<T>;
    PLAIT_TRY(value_rows_.take(c_, tensor(c_, 2), s_.heads, s_.keys, s_.values, T(1)));
    PLAIT_TRY(panels_.take(c_, room(s_.heads, key_width_, s_.width, sizeof(T))));
    parallel_ranges(c_, s_.heads, kWork / 8 / (s_.keys * (s_.width + s_.values) + 1) + 1,
                    [&](int64_t begin, int64_t end) {
                      for (int64_t n = begin; n < end; n++) pack(n);
                    });
    const int64_t work = least(kQueries, s_.queries) * s_.keys * (s_.width + s_.values);
    const int64_t size = kQueries * (s_.width + kStride + width);
    return each_unit<T>(c_, s_.heads * blocks, work, size, [&](int64_t unit, T *memory) {
      block(unit / blocks, unit % blocks * kQueries, memory);
    });
  }

 private:
  T *panels(int64_t head) const { return panels_.as<T>() + head * key_width_ * s_.width; }
  void pack(int64_t head) const {
    value_rows_.fill(head);
    pack_panels(key_.of<T>(tensor(c_, 1), head).transposed(), s_.width, s_.keys, panels(head));
  }

  void block(int64_t head, int64_t first, T *memory) const {
    const int64_t m = least(kQueries, s_.queries - first), width = padded(s_.values);
    T *q = memory, *scores = q + kQueries * s_.width, *out = scores + kQueries * kStride;
    Seen<T> seen[kQueries];
    for (int64_t i = 0; i < m; i++) seen[i] = {-T(math::kInf), T(0)};
    memset(out, 0, size_t(m * width) * sizeof(T));
    pack_rows(query_.of<T>(tensor(c_, 0), head).at(first, 0), m, s_.width, s_.width, T(real(c_, 5)),
              q);
    const int64_t end = mask_.end(first + m - 1, s_.keys);
    for (int64_t begin = 0; begin < end; begin += kKeys) {
      const int64_t n = least(kKeys, s_.keys - begin);
      multiply_tile(m, ceil_div(n, kPanel<T>) * kPanel<T>, s_.width, {q, s_.width, 1},
                    Panels<T>::packed(panels(head) + begin * s_.width, s_.width), scores, kStride,
                    false);
      for (int64_t i = 0; i < m; i++) {
        mask_.apply(scores + i * kStride, head, first + i, begin, n);
        absorb(scores + i * kStride, seen + i, out + i * width, width);
      }
      multiply_tile(m, width, n, {scores, kStride, 1},
                    Panels<T>::of_rows(value_rows_.rows(head, begin), width), out, width, true);
    }
    finish(head, first, m, seen, out, width);
  }

  void finish(int64_t head, int64_t first, int64_t m, const Seen<T> *seen, T *out,
              int64_t width) const {
    T *lse = data<T>(result(c_, 1)) + head * s_.queries + first;
    for (int64_t i = 0; i < m; i++) {
      const bool blind = seen[i].sum == T(0);  // it attends to nothing: 0, and weights of 0 below
      lse[i] = blind ? T(math::kInf) : seen[i].top + math::log(seen[i].sum);
      const T scale = blind ? T(0) : T(1) / seen[i].sum;
      for (int64_t j = 0; j < width; j++) out[i * width + j] *= scale;
    }
    write_rows(out, width, m, s_.values, T(1), result_.of<T>(result(c_), head).at(first, 0));
  }

  const plait_call *c_;
  Sizes s_;
  Heads query_, key_;
  PaddedRows<T> value_rows_;
  Heads result_;
  Mask<T> mask_;
  Workspace panels_;
  int64_t key_width_ = 0;
};

// ---- backward
// ------------------------------------------------------------------------------------

template <class T>
T dot(Matrix<T> a, Matrix<T> b, int64_t n) {
  constexpr int64_t w = kLanes<T>;
  Vec<T> part = {};
  int64_t j = 0;
  if (a.columns == 1 && b.columns == 1)
    for (; j + w <= n; j += w) part += load(a.data + j) * load(b.data + j);
  T sum = sum_of<T>(part);
  for (; j < n; j++) sum += a.data[j * a.columns] * b.data[j * b.columns];
  return sum;
}

// From scores and the gradients of weights to weights and the gradients of scores.
template <class T>
void weights_row(T *x, T *g, T lse, T mean) {
#pragma GCC ivdep
  for (int64_t j = 0; j < kKeys; j++) {
    const T weight = math::exp(x[j] - lse);
    x[j] = weight;
    g[j] = weight * (g[j] - mean);
  }
}

// attention_backward(grad, query, key, value, mask, result, lse, is_causal, scale)
template <class T>
class Backward {
 public:
  Backward(const plait_call *c, const Sizes &s)
      : c_(c),
        s_(s),
        grad_rows_(tensor(c, 0)),
        query_rows_(tensor(c, 1)),
        key_rows_(tensor(c, 2)),
        key_(tensor(c, 2)),
        value_(tensor(c, 3)),
        grad_(tensor(c, 0)),
        made_(tensor(c, 5)),
        mask_(tensor(c, 4), tensor(c, 1), integer(c, 7) != 0) {}

  plait_status run() {
    PLAIT_TRY(lse_.take(c_, tensor(c_, 6)));
    PLAIT_TRY(grad_rows_.take(c_, tensor(c_, 0), s_.heads, s_.queries, s_.values, T(1)));
    PLAIT_TRY(query_rows_.take(c_, tensor(c_, 1), s_.heads, s_.queries, s_.width, T(real(c_, 8))));
    PLAIT_TRY(key_rows_.take(c_, tensor(c_, 2), s_.heads, s_.keys, s_.width, T(1)));
    PLAIT_TRY(means_.take(c_, room(s_.heads, s_.queries, 1, sizeof(T))));
    // few heads: each range of keys sums up its own gradients of the queries
    ranges_ = ceil_div(kUnits, s_.heads > 0 ? s_.heads : 1);
    ranges_ = least(ranges_, ceil_div(s_.keys, 2 * kKeys));
    if (ranges_ < 1) ranges_ = 1;
    range_ = ceil_div(ceil_div(s_.keys, ranges_), kKeys) * kKeys;
    PLAIT_TRY(sums_.take(c_, room(s_.heads * ranges_, s_.queries, padded(s_.width), sizeof(T))));
    const int64_t each = (s_.queries + s_.keys) * (s_.width + s_.values);
    parallel_ranges(c_, s_.heads, kWork / 8 / (each + 1) + 1, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; n++) prepare(n);
    });
    const int64_t work = s_.queries * range_ * (s_.width + s_.values) * 2;
    const int64_t size = 2 * kQueries * kStride + kKeys * (s_.width + s_.values) +
                         kKeys * (padded(s_.width) + padded(s_.values));
    PLAIT_TRY(each_unit<T>(c_, s_.heads * ranges_, work, size, [&](int64_t unit, T *memory) {
      keys(unit / ranges_, unit % ranges_, memory);
    }));
    parallel_ranges(c_, s_.heads, kWork / 8 / (each + 1) + 1, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; n++) finish(n);
    });
    return PLAIT_OK;
  }

 private:
  T *sums(int64_t head, int64_t range) const {
    return sums_.as<T>() + (head * ranges_ + range) * s_.queries * padded(s_.width);
  }
  void prepare(int64_t head) const {
    grad_rows_.fill(head);
    query_rows_.fill(head);
    key_rows_.fill(head);
    T *means = means_.as<T>() + head * s_.queries;
    const Matrix<T> made = made_.of<T>(tensor(c_, 5), head), g = grad_.of<T>(tensor(c_, 0), head);
    for (int64_t i = 0; i < s_.queries; i++) means[i] = dot(made.at(i, 0), g.at(i, 0), s_.values);
  }

  // All that the keys of one range take part in.
  void keys(int64_t head, int64_t range, T *memory) const {
    const int64_t width = padded(s_.width), values = padded(s_.values);
    memset(sums(head, range), 0, size_t(s_.queries * width) * sizeof(T));
    const int64_t stop = least(s_.keys, (range + 1) * range_);
    T *key_panels = memory + 2 * kQueries * kStride, *value_panels = key_panels + kKeys * s_.width;
    T *by_key = value_panels + kKeys * s_.values, *by_value = by_key + kKeys * width;
    for (int64_t begin = range * range_; begin < stop; begin += kKeys) {
      const int64_t n = least(kKeys, stop - begin);
      pack_panels(key_.of<T>(tensor(c_, 2), head).at(begin, 0).transposed(), s_.width, n,
                  key_panels);
      pack_panels(value_.of<T>(tensor(c_, 3), head).at(begin, 0).transposed(), s_.values, n,
                  value_panels);
      memset(by_key, 0, size_t(kKeys * (width + values)) * sizeof(T));
      for (int64_t first = 0; first < s_.queries; first += kQueries) {
        const int64_t m = least(kQueries, s_.queries - first);
        if (mask_.end(first + m - 1, s_.keys) > begin)
          block(head, range, first, m, begin, n, memory);
      }
      write_rows(by_key, width, n, s_.width, T(1),
                 Heads(result(c_, 1)).of<T>(result(c_, 1), head).at(begin, 0));
      write_rows(by_value, values, n, s_.values, T(1),
                 Heads(result(c_, 2)).of<T>(result(c_, 2), head).at(begin, 0));
    }
  }

  void block(int64_t head, int64_t range, int64_t first, int64_t m, int64_t begin, int64_t n,
             T *memory) const {
    const int64_t width = padded(s_.width), values = padded(s_.values);
    const int64_t wide = ceil_div(n, kPanel<T>) * kPanel<T>;
    T *x = memory, *g = x + kQueries * kStride, *key_panels = g + kQueries * kStride;
    T *value_panels = key_panels + kKeys * s_.width, *by_key = value_panels + kKeys * s_.values;
    T *by_value = by_key + kKeys * width;
    const T *query = query_rows_.rows(head, first), *grad = grad_rows_.rows(head, first);
    multiply_tile(m, wide, s_.width, {query, width, 1}, Panels<T>::packed(key_panels, s_.width), x,
                  kStride, false);
    multiply_tile(m, wide, s_.values, {grad, values, 1}, Panels<T>::packed(value_panels, s_.values),
                  g, kStride, false);
    const T *lse = lse_ + head * s_.queries + first,
            *mean = means_.as<T>() + head * s_.queries + first;
    for (int64_t i = 0; i < m; i++) {
      mask_.apply(x + i * kStride, head, first + i, begin, n);
      weights_row(x + i * kStride, g + i * kStride, lse[i], mean[i]);
    }
    multiply_tile(n, values, m, {x, 1, kStride}, Panels<T>::of_rows(grad, values), by_value, values,
                  true);
    multiply_tile(n, width, m, {g, 1, kStride}, Panels<T>::of_rows(query, width), by_key, width,
                  true);
    multiply_tile(m, width, n, {g, kStride, 1},
                  Panels<T>::of_rows(key_rows_.rows(head, begin), width),
                  sums(head, range) + first * width, width, true);
  }

  void finish(int64_t head) const {
    const int64_t width = padded(s_.width), n = s_.queries * width;
    T *to = sums(head, 0);
    for (int64_t range = 1; range < ranges_; range++) {
      const T *from = sums(head, range);
      for (int64_t i = 0; i < n; i++) to[i] += from[i];
    }
    const DLTensor *out = result(c_);
    write_rows(to, width, s_.queries, s_.width, T(real(c_, 8)), Heads(out).of<T>(out, head));
  }

  const plait_call *c_;
  Sizes s_;
  PaddedRows<T> grad_rows_, query_rows_, key_rows_;
  Heads key_, value_, grad_, made_;
  Mask<T> mask_;
  Dense<T> lse_;
  Workspace means_, sums_;
  int64_t ranges_ = 1, range_ = kKeys;
};

plait_status attention_forward(plait_call *c) {
  const Sizes s(tensor(c, 0), tensor(c, 1), tensor(c, 2));
  if (s.queries == 0) return PLAIT_OK;
  if (s.queries <= kFew && s.keys >= kMany) return PLAIT_DECLINE;  // products with vectors
  PLAIT_FLOATING(kind(result(c)->dtype), return Forward<T>(c, s).run())
  return PLAIT_OK;
}

plait_status attention_backward(plait_call *c) {
  const Sizes s(tensor(c, 1), tensor(c, 2), tensor(c, 3));
  PLAIT_FLOATING(kind(result(c)->dtype), return Backward<T>(c, s).run())
  return PLAIT_OK;
}

PLAIT_KERNEL("attention_forward", attention_forward);
PLAIT_KERNEL("attention_backward", attention_backward);

}  // namespace
}  // namespace plait::core
