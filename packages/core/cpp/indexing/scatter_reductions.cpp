// scatter_reduce(self, dim, index, src, reduce, include_self): elements with the same index are
// summed, multiplied, averaged, or the extreme one is kept, in order.
#include "indexing/index_walk.h"
#include "kernel/copy.h"
#include "pointwise/math.h"

namespace plait::core {
namespace {

enum class Rule { kSum, kProd, kMean, kMax, kMin };

Rule rule_of(const char *name) {
  if (!strcmp(name, "prod")) return Rule::kProd;
  if (!strcmp(name, "mean")) return Rule::kMean;
  if (!strcmp(name, "amax") || !strcmp(name, "max")) return Rule::kMax;
  return strcmp(name, "amin") && strcmp(name, "min") ? Rule::kSum : Rule::kMin;
}

template <class T>
constexpr bool is_complex = false;
template <class T>
constexpr bool is_complex<scalar::math::Complex<T>> = true;

template <class T>
T smallest() {
  if constexpr (is_complex<T>)
    return T(0);
  else if constexpr (is_float<T>)
    return T(-__builtin_inf());
  else
    return T(-1) < T(0) ? T(uint64_t(1) << (8 * sizeof(T) - 1)) : T(0);
}
template <class T>
T largest() {
  if constexpr (is_complex<T>)
    return T(0);
  else if constexpr (is_float<T>)
    return T(__builtin_inf());
  else
    return T(~uint64_t(smallest<T>()));
}
template <class T>
T identity(Rule rule) {
  switch (rule) {
    case Rule::kProd: return T(1);
    case Rule::kMax: return smallest<T>();
    case Rule::kMin: return largest<T>();
    default: return T(0);
  }
}

template <class T>
void combine(const IndexWalk &p, Rule rule) {
  using W = scalar::math::wide<T>;
  if (rule == Rule::kProd)
    return p.each<T>([](T *to, const T *from) { *to = T(W(*to) * W(*from)); });
  if (rule == Rule::kSum || rule == Rule::kMean)
    return p.each<T>([](T *to, const T *from) { *to = T(W(*to) + W(*from)); });
  if constexpr (!is_complex<T>) {  // nan stays, and replaces numbers
    if (rule == Rule::kMax)
      return p.each<T>([](T *to, const T *from) {
        if (!(*from <= *to) && *to == *to) *to = *from;
      });
    p.each<T>([](T *to, const T *from) {
      if (!(*from >= *to) && *to == *to) *to = *from;
    });
  }
}

// Divides by the number of elements of each index; integers are rounded down.
template <class T>
void divide(T *to, const int64_t *count, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    if (count[i] < 2) continue;
    if constexpr (is_complex<T>) {
      to[i] = to[i] / T(double(count[i]));
    } else if constexpr (is_float<T>) {
      to[i] = T(to[i] / T(count[i]));
    } else {
      const int64_t x = int64_t(to[i]), q = x / count[i];
      to[i] = T(sizeof(T) == 8 && T(-1) > T(0) ? T(uint64_t(to[i]) / uint64_t(count[i]))
                                               : T(q - (x % count[i] < 0)));
    }
  }
}

template <class T>
plait_status reduce_into(const plait_call *c, int64_t dim, Rule rule, bool include_self) {
  const DLTensor *index = tensor(c, 2), *source = tensor(c, 3);
  DLTensor *out = result(c);
  if (!include_self) {
    const T first = identity<T>(rule);
    parallel_parts(c, index, out, source, dim, sizeof(T), false, [first](const IndexWalk &p) {
      p.each<T>([first](T *to, const T *) { *to = first; });
    });
  }
  parallel_parts(c, index, out, source, dim, sizeof(T), false,
                 [rule](const IndexWalk &p) { combine<T>(p, rule); });
  if (rule != Rule::kMean) return PLAIT_OK;
  const int64_t n = numel(out);
  Workspace space;
  PLAIT_TRY(space.take(c, uint64_t(n ? n : 1) * 8));
  int64_t *count = space.as<int64_t>();
  for (int64_t i = 0; i < n; i++) count[i] = include_self;
  DLTensor counts = *out;  // dense like the result
  counts.data = count;
  IndexWalk(index, &counts, nullptr, dim, 8).each<int64_t>([](int64_t *to, const int64_t *) {
    ++*to;
  });
  divide(data<T>(out), count, n);
  return PLAIT_OK;
}

plait_status scatter_reduce(plait_call *c) {
  const DLTensor *in = tensor(c, 0), *index = tensor(c, 2);
  DLTensor *out = result(c);
  const Kind k = kind(in->dtype);
  const int64_t dim = in->ndim ? wrapped(integer(c, 1), in->ndim) : 0;
  const Rule rule = rule_of(c->in[4].u.s);
  const bool include_self = integer(c, 5, 1) != 0;
  if (is_half(k)) return PLAIT_DECLINE;
  PLAIT_TRY(check_indices(c, "index", index, in->ndim ? in->shape[dim] : 1));
  PLAIT_TRY(copy(c, out, in));
  if (k == Bool) {  // sum and amax are "or", prod and amin are "and"
    const Rule as =
        rule == Rule::kSum || rule == Rule::kMean || rule == Rule::kMax ? Rule::kMax : Rule::kMin;
    const auto run = [&](auto &&f) {
      parallel_parts(c, index, out, tensor(c, 3), dim, 1, false, f);
    };
    if (!include_self)
      run([as](const IndexWalk &p) {
        p.each<uint8_t>([as](uint8_t *to, const uint8_t *) { *to = as == Rule::kMin; });
      });
    run([as](const IndexWalk &p) { combine<uint8_t>(p, as); });
    return PLAIT_OK;
  }
  if (is_complex_kind(k)) PLAIT_COMPLEX(k, return reduce_into<T>(c, dim, rule, include_self))
  PLAIT_NUMERIC(k, return reduce_into<T>(c, dim, rule, include_self))
  return PLAIT_OK;
}
PLAIT_KERNEL("scatter_reduce", scatter_reduce);

}  // namespace
}  // namespace plait::core
