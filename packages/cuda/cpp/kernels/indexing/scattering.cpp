// Writing by indices: scatter, index_add, embedding_backward and advanced indexing. Several writes
// to one place count in order: the last one is kept, and sums are added up in order after a sort by
// places. Integers, and float32 and float64 in narrow rows unless PLAIT_SETTING_DETERMINISTIC is
// set, are added by atomic operations.
#include "block/block.h"
#include "host/walk.h"

namespace plait::cuda {
namespace {

enum Rule : int32_t { kSum, kProd, kMean, kMax, kMin };

// Entries are the positions whose index can differ; each writes `rest` elements of self, whose
// places are independent of the index. Offsets are in elements.
struct ScatterArgs {
  void *self;
  const void *source;  // NULL: `number`
  const int64_t *indices;
  void *keys;  // of entries: the offsets of self that they name; to be written, or sorted
  uint32_t *places;  // of sorted entries
  int32_t *owners;  // of offsets: the last entry that names it; or NULL
  int64_t n, entries, rest;
  int64_t step, low, size, bias, skipped;
  uint64_t wrong_key;  // of entries that write nothing
  int32_t is_checked, entries_inner, is_large, key_bytes;
  int32_t rule, include_self;
  int32_t is_silent;  // a kernel before has reported wrong indices
  Divider divider;  // of the inner one of entries and rest
  uint64_t number[2];
  double alpha[2];
  int64_t whole_alpha;
  Walk<3> entry;  // of self, of source, of indices
  Walk<2> other;  // of self, of source
  Fault fault;
};

#if PLAIT_KERNELS
struct Entry {
  int64_t self, source;
  bool is_valid;
};
PLAIT_DEVICE Entry entry_at(Thread &t, const ScatterArgs &a, int64_t p) {
  int64_t offset[3];
  a.entry.seek(p, offset);
  int64_t index = t.global<const int64_t>(a.indices).load(offset[2]);
  bool is_valid = true;
  if (a.is_checked) {
    is_valid = index >= a.low && index < a.size;
    if (!is_valid && !a.is_silent)
      t.fail(a.fault, kIndexFault, double(index), double(a.low), double(a.size));
    if (index < 0) index += a.size;
    is_valid = is_valid && index != a.skipped;
  }
  return {offset[0] + index * a.step, offset[1], is_valid};
}

// The entry, and the element of it.
PLAIT_DEVICE void split(const ScatterArgs &a, int64_t i, int64_t *p, int64_t *r) {
  const int64_t inner = a.entries_inner ? a.entries : a.rest;
  const int64_t high = a.is_large ? i / inner : int64_t(quotient(a.divider, uint32_t(i)));
  *p = a.entries_inner ? i - high * inner : high;
  *r = a.entries_inner ? high : i - high * inner;
}

PLAIT_DEVICE uint64_t key_at(Thread &t, const ScatterArgs &a, int64_t q) {
  return a.key_bytes == 8 ? t.global<const uint64_t>(a.keys).load(q)
                          : uint64_t(t.global<const uint32_t>(a.keys).load(q));
}

template <class T>
PLAIT_DEVICE void claim_places(Thread &t, const ScatterArgs &a) {
  const auto owners = t.global<T>(a.owners);
  for (int64_t p = t.index(); p < a.entries; p += t.stride()) {
    const Entry e = entry_at(t, a, p);
    if (e.is_valid) owners.maximum(e.self + a.bias, T(p));
  }
}

template <class K>
PLAIT_DEVICE void write_places(Thread &t, const ScatterArgs &a) {
  const auto keys = t.global<K>(a.keys);
  for (int64_t p = t.index(); p < a.entries; p += t.stride()) {
    const Entry e = entry_at(t, a, p);
    keys.store(p, e.is_valid ? K(e.self + a.bias) : K(a.wrong_key));
  }
}

template <class T>
PLAIT_DEVICE void scatter_elements(Thread &t, const ScatterArgs &a) {
  T number;
  memcpy(&number, a.number, sizeof number);
  const auto self = t.global<T>(a.self);
  const auto source = t.global<const T>(a.source ? a.source : a.self);
  const auto owners = t.global<const int32_t>(a.owners);
  for (int64_t i = t.index(); i < a.n; i += t.stride()) {
    int64_t p, r, offset[2];
    split(a, i, &p, &r);
    const Entry e = entry_at(t, a, p);
    if (!e.is_valid || (a.owners && owners.load(e.self + a.bias) != p)) continue;
    a.other.seek(r, offset);
    // without owners, entries of one place have one value
    const T value = a.source ? source.load(e.source + offset[1]) : number;
    self.store_same(e.self + offset[0], value);
  }
}

// The last of the sorted entries of each place is written. Wrong indices have the largest key.
template <class T>
PLAIT_DEVICE void scatter_last(Thread &t, const ScatterArgs &a) {
  const auto self = t.global<T>(a.self);
  const auto source = t.global<const T>(a.source);
  const auto places = t.global<const uint32_t>(a.places);
  for (int64_t i = t.index(); i < a.n; i += t.stride()) {
    int64_t q, r, offset[2];
    split(a, i, &q, &r);
    const uint64_t key = key_at(t, a, q);
    if (key == a.wrong_key || (q + 1 < a.entries && key_at(t, a, q + 1) == key)) continue;
    const Entry e = entry_at(t, a, places.load(q));
    a.other.seek(r, offset);
    self.store(e.self + offset[0], source.load(e.source + offset[1]));
  }
}

template <class V>
PLAIT_DEVICE V combine(int32_t rule, V x, V y) {
  using W = scalar::math::wide<V>;
  if constexpr (std::is_same_v<V, bool>) {
    return rule == kProd || rule == kMin ? x && y : x || y;
  } else {
    if (rule == kProd) return V(W(x) * W(y));
    if constexpr (!scalar::math::is_complex<V>) {  // nan stays, and replaces numbers
      if (rule == kMax) return !(y <= x) && x == x ? y : x;
      if (rule == kMin) return !(y >= x) && x == x ? y : x;
    }
    return V(W(x) + W(y));
  }
}

template <class V>
PLAIT_DEVICE V divide(V sum, int64_t count) {
  if constexpr (scalar::math::is_complex<V>) {  // by parts: one that is infinite leaves the other
    using R = typename scalar::math::RealOf<V>::type;
    return V(sum.re / R(count), sum.im / R(count));
  } else if constexpr (scalar::math::is_floating<V>) {
    return sum / V(count);
  } else if constexpr (std::is_same_v<V, bool>) {
    return sum;
  } else if constexpr (std::is_same_v<V, uint64_t>) {
    return sum / uint64_t(count);
  } else {  // rounded down
    const int64_t x = int64_t(sum), quotient = x / count;
    return V(quotient - (x % count < 0));
  }
}

template <class V>
PLAIT_DEVICE V alpha_of(const ScatterArgs &a) {
  if constexpr (scalar::math::is_complex<V>) {
    using R = typename scalar::math::RealOf<V>::type;
    return V(R(a.alpha[0]), R(a.alpha[1]));
  } else if constexpr (scalar::math::is_floating<V>) {
    return V(a.alpha[0]);
  } else {
    return V(a.whole_alpha);
  }
}
template <class V>
PLAIT_DEVICE V multiply(V x, V y) {
  if constexpr (std::is_same_v<V, bool>) {
    return x && y;
  } else {
    if constexpr (scalar::math::is_complex<V>)  // 1 times infinity has a part 0 * infinity
      if (x.re == 1 && x.im == 0) return y;
    return V(scalar::math::wide<V>(x) * scalar::math::wide<V>(y));
  }
}

// The first sorted entry behind q with another key, found in steps that double.
PLAIT_DEVICE int64_t end_of_run(Thread &t, const ScatterArgs &a, int64_t q, uint64_t key) {
  int64_t low = q + 1, step = 1;  // entries before `low` have the key
  while (low + step - 1 < a.entries && key_at(t, a, low + step - 1) == key) low += step, step *= 2;
  int64_t high = low + step - 1 < a.entries ? low + step - 1 : a.entries;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (key_at(t, a, middle) == key)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

// Each place is combined with its entries in order, by the thread of its first sorted entry.
// Several are read at once, as a place can have many.
template <class T>
PLAIT_DEVICE void scatter_sorted(Thread &t, const ScatterArgs &a) {
  using V = Compute<T>;
  constexpr int kAtOnce = 8;
  const auto self = t.global<T>(a.self);
  const auto source = t.global<const T>(a.source);
  const auto places = t.global<const uint32_t>(a.places);
  const V alpha = alpha_of<V>(a);
  for (int64_t i = t.index(); i < a.n; i += t.stride()) {
    int64_t q, r, offset[2], first[3];
    split(a, i, &q, &r);
    const uint64_t key = key_at(t, a, q);
    if (key == a.wrong_key || (q > 0 && key_at(t, a, q - 1) == key)) continue;
    a.other.seek(r, offset);
    const int64_t to = entry_at(t, a, places.load(q)).self + offset[0];
    const int64_t end = end_of_run(t, a, q, key);
    int64_t count = a.include_self + end - q;
    V value = a.include_self ? widen(self.load(to)) : V{};
    bool is_empty = !a.include_self;
    for (; q < end; q += kAtOnce) {
      V more[kAtOnce];
#pragma unroll
      for (int k = 0; k < kAtOnce; k++) {
        if (q + k >= end) continue;
        a.entry.seek(int64_t(places.load(q + k)), first);
        more[k] = widen(source.load(first[1] + offset[1]));
      }
#pragma unroll
      for (int k = 0; k < kAtOnce; k++) {
        if (q + k >= end) continue;
        const V one = multiply(alpha, more[k]);
        value = is_empty ? one : combine(a.rule, value, one);
        is_empty = false;
      }
    }
    if (a.rule == kMean && count > 1) value = divide(value, count);
    self.store(to, narrow<T>(value));
  }
}

template <class T>
PLAIT_DEVICE void scatter_atomic(Thread &t, const ScatterArgs &a) {
  const auto self = t.global<T>(a.self);
  const auto source = t.global<const T>(a.source);
  const T alpha = alpha_of<T>(a);
  for (int64_t i = t.index(); i < a.n; i += t.stride()) {
    int64_t p, r, offset[2];
    split(a, i, &p, &r);
    const Entry e = entry_at(t, a, p);
    if (!e.is_valid) continue;
    a.other.seek(r, offset);
    self.add(e.self + offset[0], multiply(alpha, source.load(e.source + offset[1])));
  }
}
#endif

#define PLAIT_EACH_OWNERS(X, ...) X(i32, int32_t, __VA_ARGS__)
#define PLAIT_EACH_SORT_KEYS(X, ...) X(u32, uint32_t, __VA_ARGS__) X(u64, uint64_t, __VA_ARGS__)
#define PLAIT_EACH_ATOMIC(X, ...) /* integers by their size */ \
  X(u8, uint8_t, __VA_ARGS__)                                  \
  X(u16, uint16_t, __VA_ARGS__)                                \
  X(u32, uint32_t, __VA_ARGS__)                                \
  X(u64, uint64_t, __VA_ARGS__)                                \
  PLAIT_EACH_WIDE(X, __VA_ARGS__)
PLAIT_DEVICE_KERNEL(claim_places, ScatterArgs, 256, OWNERS);
PLAIT_DEVICE_KERNEL(write_places, ScatterArgs, 256, SORT_KEYS);
PLAIT_DEVICE_KERNEL(scatter_elements, ScatterArgs, 256, SIZES);
PLAIT_DEVICE_KERNEL(scatter_last, ScatterArgs, 256, SIZES);
PLAIT_DEVICE_KERNEL(scatter_sorted, ScatterArgs, 256, ANY);
PLAIT_DEVICE_KERNEL(scatter_atomic, ScatterArgs, 256, ATOMIC);

}  // namespace
}  // namespace plait::cuda

#if PLAIT_HOST
#include "host/device.h"
#include "host/indexing.h"
#include "host/sort.h"

namespace plait::cuda {
namespace {

class Scatter {
 public:
  ScatterArgs a{};
  // `source` has been set in the space; its data may be NULL.
  plait_status plan(const plait_call *c, const IndexSpace &s, const DLTensor *self,
                    const void *source);
  // Writes the source, or `number`.
  plait_status assign(const plait_call *c, int item);
  // Combines by `rule`.
  plait_status combine(const plait_call *c, Kind k);

 private:
  plait_status sort(const plait_call *c);
  int64_t blocks(const plait_call *c, int64_t n) const { return blocks_for(c, n, 256); }
  int64_t span_ = 1;
  bool source_varies_ = false;
  RadixSort radix_;
  DeviceWorkspace owners_;
};

plait_status Scatter::plan(const plait_call *c, const IndexSpace &s, const DLTensor *self,
                           const void *source) {
  Plan entry, other;
  entry.operands = 3, other.operands = 2;
  int64_t lowest = s.lowest, highest = s.highest;
  bool entries_inner = false;
  for (int d = 0; d < s.ndim; d++) {
    source_varies_ |= s.shape[d] > 1 && s.other[d] != 0;
    const bool is_rest = s.index[d] == 0 && s.self[d] != 0;
    Plan &to = is_rest ? other : entry;
    to.numel *= to.size[to.ndim] = s.shape[d];
    to.stride[0][to.ndim] = s.self[d];
    to.stride[1][to.ndim] = s.other[d];
    if (!is_rest) entry.stride[2][to.ndim] = s.index[d];
    to.ndim++;
    if (s.shape[d] > 1) entries_inner = !is_rest;
    if (!is_rest) (s.self[d] < 0 ? lowest : highest) += (s.shape[d] - 1) * s.self[d];
  }
  a.entries = entry.numel, a.rest = other.numel, a.n = a.entries * a.rest;
  if (a.n == 0) return PLAIT_OK;
  if (a.entries > INT32_MAX)
    return PLAIT_FAIL(c, PLAIT_NOT_IMPLEMENTED, "there must be fewer than 2**31 indices; got %lld",
                      (long long)a.entries);
  entry.finish(false);  // their order counts
  other.finish(false);
  if (!make_walk(entry, &a.entry) || !make_walk(other, &a.other)) return too_many_dimensions(c);
  a.self = self->data, a.source = source, a.indices = s.indices;
  a.step = s.step, a.low = s.low, a.size = s.size, a.is_checked = s.is_checked;
  a.bias = -lowest, span_ = highest - lowest + 1;
  a.entries_inner = entries_inner, a.is_large = a.n >= int64_t(1) << 31;
  a.divider = divider(a.is_large ? 1 : entries_inner ? a.entries : a.rest);
  a.skipped = -1, a.include_self = 1, a.whole_alpha = 1, a.alpha[0] = 1;
  a.fault = fault_of(c);
  return PLAIT_OK;
}

plait_status Scatter::sort(const plait_call *c) {
  a.key_bytes = span_ >= int64_t(UINT32_MAX) ? 8 : 4;
  a.wrong_key = uint64_t(span_);
  PLAIT_TRY(radix_.take(c, 1, a.entries, a.key_bytes));
  a.keys = radix_.keys();
  PLAIT_TRY(
      launch(c, write_places_kernel, a.key_bytes == 8 ? U64 : U32, a, blocks(c, a.entries), 256));
  PLAIT_TRY(radix_.sort(c, bits_below(span_ + 1)));
  a.is_silent = 1;
  a.keys = const_cast<void *>(radix_.sorted_keys());
  a.places = const_cast<uint32_t *>(radix_.places());
  return PLAIT_OK;
}

plait_status Scatter::assign(const plait_call *c, int item) {
  if (a.n == 0) return PLAIT_OK;
  const bool is_ordered = a.source && source_varies_ && a.entries > 1;
  if (is_ordered && span_ > 8 * a.entries + 65536) {
    PLAIT_TRY(sort(c));
    return launch(c, scatter_last_kernel, instance_of_size(item), a, blocks(c, a.n), 256);
  }
  if (is_ordered) {
    PLAIT_TRY(owners_.take(c, span_ * 4));
    a.owners = owners_.data<int32_t>();
    PLAIT_TRY(fill_bytes(c, a.owners, 0xff, span_ * 4));
    PLAIT_TRY(launch(c, claim_places_kernel, I32, a, blocks(c, a.entries), 256));
    a.is_silent = 1;
  }
  return launch(c, scatter_elements_kernel, instance_of_size(item), a, blocks(c, a.n), 256);
}

// An instance of scatter_atomic; Unknown if the order of sums counts.
Kind atomic_kind(Kind k, int64_t rest) {
  const bool may_vary =
      !(__atomic_load_n(runtime->settings, __ATOMIC_RELAXED) & PLAIT_SETTING_DETERMINISTIC);
  switch (k) {
    case U8:
    case I8: return U8;
    case U16:
    case I16: return U16;
    case U32:
    case I32: return U32;
    case U64:
    case I64: return U64;
    case F32:
    case F64: return may_vary && rest < 4 ? k : Unknown;
    default: return Unknown;
  }
}

plait_status Scatter::combine(const plait_call *c, Kind k) {
  if (a.n == 0) return PLAIT_OK;
  const Kind atomic = a.rule == kSum && a.include_self ? atomic_kind(k, a.rest) : Unknown;
  if (atomic != Unknown) return launch(c, scatter_atomic_kernel, atomic, a, blocks(c, a.n), 256);
  PLAIT_TRY(sort(c));
  return launch(c, scatter_sorted_kernel, k, a, blocks(c, a.n), 256);
}

int64_t dim_of(const plait_call *c, int i, const DLTensor *t) {
  return t->ndim ? wrapped(integer(c, i), t->ndim) : 0;
}

// What scatter and its relatives begin with: the result is a copy of self.
struct Along {
  Operand index, source;
  AlignedTarget to;
  IndexSpace space;
  Scatter scatter;
  plait_status take(const plait_call *c, bool has_source) {
    const DLTensor *in = tensor(c, 0);
    PLAIT_TRY(copy_tensor(c, result(c), in));
    PLAIT_TRY(to.take(c, result(c)));
    const DLTensor *out = to.tensor();
    PLAIT_TRY(index.take(c, tensor(c, 2)));
    space_along(out, index.tensor(), dim_of(c, 1, in), &space);
    const void *data = nullptr;
    if (has_source) {
      PLAIT_TRY(source.take(c, tensor(c, 3)));
      // the source has at least the sizes of the index, and is read from its beginning
      const DLTensor *t = source.tensor();
      for (int d = 0; d < space.ndim && d < t->ndim; d++) space.other[d] = t->strides[d];
      data = t->data;
    }
    return scatter.plan(c, space, out, data);
  }
};

// scatter(self, dim, index, src) and scatter.value(self, dim, index, value)
plait_status scatter(plait_call *c) {
  Along along;
  const DLTensor *source = tensor(c, 3);
  const bool is_number = !source;
  PLAIT_TRY(along.take(c, !is_number));
  const Kind k = kind(result(c)->dtype);
  if (is_number) store_number(k, c->in[3], along.scatter.a.number);
  PLAIT_TRY(along.scatter.assign(c, size_of(k)));
  return along.to.finish(c);
}

// scatter_add(self, dim, index, src)
plait_status scatter_add(plait_call *c) {
  Along along;
  PLAIT_TRY(along.take(c, true));
  PLAIT_TRY(along.scatter.combine(c, kind(result(c)->dtype)));
  return along.to.finish(c);
}

Rule rule_of(const char *name) {
  if (!strcmp(name, "prod")) return kProd;
  if (!strcmp(name, "mean")) return kMean;
  if (!strcmp(name, "amax") || !strcmp(name, "max")) return kMax;
  return strcmp(name, "amin") && strcmp(name, "min") ? kSum : kMin;
}

// scatter_reduce(self, dim, index, src, reduce, include_self)
plait_status scatter_reduce(plait_call *c) {
  Along along;
  PLAIT_TRY(along.take(c, true));
  along.scatter.a.rule = rule_of(c->in[4].u.s);
  along.scatter.a.include_self = integer(c, 5, 1) != 0;
  PLAIT_TRY(along.scatter.combine(c, kind(result(c)->dtype)));
  return along.to.finish(c);
}

// index_add(self, dim, index, source, alpha)
plait_status index_add(plait_call *c) {
  const DLTensor *in = tensor(c, 0), *out = result(c);
  Operand index, source;
  PLAIT_TRY(copy_tensor(c, out, in));
  PLAIT_TRY(index.take(c, tensor(c, 2)));
  PLAIT_TRY(source.take(c, tensor(c, 3)));
  IndexSpace s;
  if (in->ndim)
    space_of_slices(out, index.tensor(), dim_of(c, 1, in), &s);
  else
    space_along(out, index.tensor(), 0, &s);
  s.set_other(source.tensor());
  Scatter scatter;
  PLAIT_TRY(scatter.plan(c, s, out, source.data()));
  const Kind k = kind(out->dtype);
  const plait_value &alpha = c->in[4];
  scatter.a.alpha[0] = real(c, 4, 1);
  scatter.a.alpha[1] = alpha.tag == PLAIT_COMPLEX ? alpha.u.fs[1] : 0;
  scatter.a.whole_alpha = alpha.tag == PLAIT_COMPLEX || k >= F32 ? 1
                          : k == Bool                            ? integer(c, 4) != 0
                                                                 : integer(c, 4);
  return scatter.combine(c, k);
}

// embedding_backward(grad, indices, num_weights, padding_idx)
plait_status embedding_backward(plait_call *c) {
  const DLTensor *out = result(c);
  Operand grad, index;
  PLAIT_TRY(fill_tensor(c, out, int64_t(0)));
  PLAIT_TRY(grad.take(c, tensor(c, 0)));
  PLAIT_TRY(index.take(c, tensor(c, 1)));
  IndexSpace s;
  space_of_rows(out, index.tensor(), &s);
  s.set_other(grad.tensor());
  Scatter scatter;
  PLAIT_TRY(scatter.plan(c, s, out, grad.data()));
  scatter.a.skipped = integer(c, 3, -1);
  return scatter.combine(c, kind(out->dtype));
}

// index_put_tensors_(self, indices, values, accumulate)
plait_status index_put(plait_call *c) {
  AlignedTarget to;
  PLAIT_TRY(to.take(c, tensor(c, 0)));
  const DLTensor *self = to.tensor();
  const Kind k = kind(self->dtype);
  const bool accumulates = integer(c, 3) != 0;
  TensorIndices indices;
  IndexSpace s;
  PLAIT_TRY(indices.take(c, self, c->in[1], &s));
  Operand values;
  DeviceWorkspace element;
  const void *source = nullptr;
  Scatter scatter;
  if (tensor(c, 2)) {
    PLAIT_TRY(values.take(c, tensor(c, 2)));
    if (kind(values.tensor()->dtype) != k) return PLAIT_DECLINE;
    s.set_other(values.tensor());
    source = values.data();
  } else if (accumulates) {  // the number as a tensor of one element
    DLTensor one = *self;
    PLAIT_TRY(element.take(c, 16));
    one.ndim = 0, one.data = element.data();
    PLAIT_TRY(fill_tensor(c, &one, c->in[2]));
    source = element.data();
  }
  PLAIT_TRY(scatter.plan(c, s, self, source));
  if (!source) store_number(k, c->in[2], scatter.a.number);
  PLAIT_TRY(accumulates ? scatter.combine(c, k) : scatter.assign(c, size_of(k)));
  return to.finish(c);
}

PLAIT_KERNEL("scatter", scatter);
PLAIT_KERNEL("scatter.value", scatter);
PLAIT_KERNEL("scatter_add", scatter_add);
PLAIT_KERNEL("scatter_reduce", scatter_reduce);
PLAIT_KERNEL("index_add", index_add);
PLAIT_KERNEL("embedding_backward", embedding_backward);
PLAIT_KERNEL("index_put_tensors_", index_put);

}  // namespace
}  // namespace plait::cuda
#endif
