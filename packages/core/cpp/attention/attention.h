// Shared by both passes of attention: heads, masks, and blocks of scores.
#pragma once
#include "kernel/dense.h"
#include "kernel/half.h"
#include "kernel/integers.h"
#include "linalg/tile.h"
#include "normalization/softmax_rows.h"
#include "reduction/reduce.h"

namespace plait::core {

constexpr int64_t kQueries = 96, kKeys = 128;  // a block of scores
// between rows of a block; rows 128 elements apart would share sets of the cache
constexpr int64_t kStride = kKeys + 16;
constexpr int64_t kWork = 1 << 18;  // multiplications for one unit of parallel work
// units of parallel work: the keys of few heads are cut into ranges to make so many
constexpr int64_t kUnits = 16;

// Bytes of heads x rows x columns elements; on overflow more than any machine has.
inline uint64_t bytes_of(int64_t heads, int64_t rows, int64_t columns, size_t item) {
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

// The rows of a tensor's heads as numbers of T, also of halves.
template <class T>
class HeadRows {
 public:
  explicit HeadRows(const DLTensor *t) : elements_(t), heads_(t), t_(t) {}
  bool widens() const { return elements_.widens(); }
  const Heads &heads() const { return heads_; }
  // Rows [i, i + n), all of whose elements times `factor`, padded to `width` elements with zeros.
  void pack(int64_t head, int64_t i, int64_t n, int64_t columns, int64_t width, T factor,
            T *to) const {
    if (!widens()) return pack_rows(heads_.of<T>(t_, head).at(i, 0), n, columns, width, factor, to);
    if (factor == T(1) && columns == width && heads_.columns == 1 && heads_.rows == columns)
      return elements_.get(at(head, i), 1, n * columns, to);
    for (int64_t r = 0; r < n; r++, to += width) {
      elements_.get(at(head, i + r), heads_.columns, columns, to);
      for (int64_t j = 0; factor != T(1) && j < columns; j++) to[j] *= factor;
      for (int64_t j = columns; j < width; j++) to[j] = T(0);
    }
  }
  // Rows [i, i + n): where they lie, or in `memory`.
  Matrix<T> read(int64_t head, int64_t i, int64_t n, int64_t columns, T *memory) const {
    if (!widens()) return heads_.of<T>(t_, head).at(i, 0);
    pack(head, i, n, columns, columns, T(1), memory);
    return {memory, columns, 1};
  }
  // Writes rows [i, i + n) from rows of `width` elements.
  void write(int64_t head, int64_t i, int64_t n, int64_t columns, int64_t width,
             const T *from) const {
    for (int64_t r = 0; r < n; r++)
      elements_.put(at(head, i + r), heads_.columns, columns, from + r * width);
  }

 private:
  int64_t at(int64_t head, int64_t i) const { return heads_.lead.offset(head) + i * heads_.rows; }
  Elements<T> elements_;
  Heads heads_;
  const DLTensor *t_;
};

struct HeadSizes {
  int64_t heads, queries, keys, width, values;  // N, L, S, E, Ev
  HeadSizes(const DLTensor *q, const DLTensor *k, const DLTensor *v)
      : heads(1),
        queries(q->shape[q->ndim - 2]),
        keys(k->shape[k->ndim - 2]),
        width(q->shape[q->ndim - 1]),
        values(v->shape[v->ndim - 1]) {
    for (int d = 0; d < q->ndim - 2; d++) heads *= q->shape[d];
  }
};

// Which scores count, and the mask that is added to them.
template <class T>
struct ScoreMask {
  const DLTensor *t;
  Heads heads;
  bool causal, is_bool;
  ScoreMask(const DLTensor *mask, const DLTensor *q, bool is_causal)
      : t(mask),
        heads(mask ? mask : q, q),
        causal(is_causal),
        is_bool(mask && kind(mask->dtype) == Bool) {}
  // Keys from this one on do not count for query i and those before it.
  int64_t end(int64_t i, int64_t keys) const { return causal ? least(keys, i + 1) : keys; }

  // Queries before this one do not see key j.
  int64_t first(int64_t j) const { return causal ? j : 0; }

  // Scores of query i and keys [begin, begin + n); the rest of kKeys is -inf.
  void apply(T *x, int64_t head, int64_t i, int64_t begin, int64_t n) const {
    if (t && is_bool) {
      const bool *m = data<bool>(t) + at(head, i, begin);
      for (int64_t j = 0; j < n; j++) x[j] = m[j * heads.columns] ? x[j] : -T(math::kInf);
    } else if (t) {
      T m[kKeys];
      Elements<T>(t).get(at(head, i, begin), heads.columns, n, m);
      for (int64_t j = 0; j < n; j++) x[j] += m[j];
    }
    const int64_t seen = end(i, begin + n) - begin;
    for (int64_t j = seen < 0 ? 0 : seen; j < kKeys; j++) x[j] = -T(math::kInf);
  }

 private:
  int64_t at(int64_t head, int64_t i, int64_t j) const {
    return heads.lead.offset(head) + i * heads.rows + j * heads.columns;
  }
};

// A head's rows without gaps, padded to whole panels: the tensor's own memory if it has this
// layout.
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
    own_ = !rows_.widens() && factor == T(1) && rows_.heads().columns == 1 &&
           rows_.heads().rows == width_ && columns == width_;
    return own_ ? PLAIT_OK : space_.take(c, bytes_of(heads, n, width_, sizeof(T)));
  }
  explicit PaddedRows(const DLTensor *t) : rows_(t) {}
  void fill(int64_t head) const {
    if (!own_)
      rows_.pack(head, 0, n_, columns_, width_, factor_,
                 space_.template as<T>() + head * n_ * width_);
  }
  const T *rows(int64_t head, int64_t i) const {
    return (own_ ? data<T>(t_) + rows_.heads().lead.offset(head)
                 : space_.template as<T>() + head * n_ * width_) +
           i * width_;
  }
  int64_t width() const { return width_; }

 private:
  const DLTensor *t_ = nullptr;
  HeadRows<T> rows_;
  int64_t n_ = 0, columns_ = 0, width_ = 0;
  T factor_ = T(1);
  bool own_ = false;
  Workspace space_;
};

// The product of two rows of n elements.
template <class T>
T dot(Matrix<T> a, Matrix<T> b, int64_t n) {
  constexpr int64_t w = kLanes<T>;
  Vec<T> part = {}, other = {};
  int64_t j = 0;
  if (a.columns == 1 && b.columns == 1) {
    for (; j + 2 * w <= n; j += 2 * w) {
      part = fused(load(a.data + j), load(b.data + j), part);
      other = fused(load(a.data + j + w), load(b.data + j + w), other);
    }
    for (; j + w <= n; j += w) part = fused(load(a.data + j), load(b.data + j), part);
  }
  T sum = in_every_lane<Sum, T>(part + other)[0];
  for (; j < n; j++) sum = fused(a.data[j * a.columns], b.data[j * b.columns], sum);
  return sum;
}

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
    if (!space.try_take(uint64_t(size) * sizeof(T)))
      return __atomic_store_n(&failed, true, __ATOMIC_RELAXED);
    for (int64_t i = begin; i < end; i++) f(i, space.as<T>());
  });
  return failed ? Workspace::out_of_memory(c, uint64_t(size) * sizeof(T)) : PLAIT_OK;
}

}  // namespace plait::core
