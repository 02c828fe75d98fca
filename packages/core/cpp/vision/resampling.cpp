// Resampling of one dimension: each result is a sum of weighted neighbours. The derivative is the
// same with the transposed matrix of weights. kAtOnce results that have the same weights are
// computed at once: they lie side by side, or some rows are transposed. uint8 has integer weights.
#include "kernel/copy.h"
#include "kernel/half.h"
#include "kernel/integers.h"
#include "kernel/transpose.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace plait::core {
namespace {

constexpr int64_t kAtOnce = 16;  // results that are computed at once
constexpr int64_t kUnit = 32768;  // products that make a unit of parallel work
constexpr int64_t kTile = 32768;  // bytes of transposed rows

// The weights.

// A function of weights; its value is how many elements it reaches to each side.
enum class Kernel { kLinear = 1, kCubic = 2, kLanczos = 3 };

struct Numbers {
  int64_t old_size, new_size;
  double step;
  Kernel kernel;
  bool nearest, exact, align_corners, antialias;
  bool single;  // places of "nearest" in float32
};

// The rows of a matrix of which each has some adjacent elements that are not 0.
struct Table {
  int64_t rows = 0;
  int64_t *start = nullptr;  // the first element
  int64_t *first = nullptr;  // where the weights begin; rows + 1 of them
  double *weights = nullptr;
  int64_t count(int64_t i) const { return first[i + 1] - first[i]; }
};

// A number as an index: NaN and what is too small are `low`.
int64_t within(double x, int64_t low, int64_t high) {
  return !(x > double(low)) ? low : x >= double(high) ? high : int64_t(x);
}

// sin(pi x) / (pi x) for 0 <= x < 2^31 by the sine's series: the bits of the C library's sine
// depend on the processor.
double sinc(double x) {
  if (x == 0) return 1;
  const int64_t whole = int64_t(x + 0.5);
  const double y = (x - double(whole)) * 3.14159265358979323846, square = y * y;
  double series = 1;
  for (int k = 20; k >= 2; k -= 2) series = 1 - series * square / double(k * (k + 1));
  return (whole % 2 ? -y : y) * series / (x * 3.14159265358979323846);
}

double weight_at(double x, Kernel kernel, double a) {
  x = __builtin_fabs(x);
  if (kernel == Kernel::kLanczos) return x < 3 ? sinc(x) * sinc(x / 3) : 0;
  if (kernel == Kernel::kLinear) return x < 1 ? 1 - x : 0;
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

class Weights {
 public:
  explicit Weights(const Numbers &v) : v_(v) {
    ratio_ = v.step;
    if (v.align_corners)
      ratio_ = v.new_size > 1 ? double(v.old_size - 1) / double(v.new_size - 1) : 0;
    wide_ = v.antialias && ratio_ > 1 ? ratio_ : 1;
    reach_ = wide_ * int(v.kernel);
    shift_ = v.align_corners && !v.antialias ? 0.5 : 0;
  }
  plait_status take(const plait_call *c) {
    const int64_t n = v_.new_size;
    PLAIT_TRY(places_.take(c, uint64_t(2 * n + 1) * sizeof(int64_t)));
    table_.rows = n;
    table_.start = places_.as<int64_t>();
    table_.first = table_.start + n;
    const int64_t most = v_.nearest ? 1 : within(2 * reach_ + 2, 1, v_.old_size);
    PLAIT_TRY(weights_.take(c, uint64_t(n) * uint64_t(most) * sizeof(double)));
    table_.weights = weights_.as<double>();
    table_.first[0] = 0;
    if (v_.nearest) {
      for (int64_t i = 0; i < n; i++) nearest(i);
      return PLAIT_OK;
    }
    const bool linear = v_.kernel == Kernel::kLinear && !v_.antialias && v_.old_size < INT32_MAX;
    int64_t begin = 0, end = n;
    while (begin < n && !(linear && inside(begin))) weighted(begin++);
    while (end > begin && !inside(end - 1)) end--;
    linear_pairs(begin, end);
    for (int64_t i = end; i < n; i++) weighted(i);
    return PLAIT_OK;
  }
  const Table &table() const { return table_; }

 private:
  double centre(int64_t i) const { return ratio_ * (double(i) + 0.5 - shift_); }
  double first(double centre) const { return __builtin_floor(centre - reach_ + 0.5 + shift_); }
  // Whether no element that a result reads lies beyond a border.
  bool inside(int64_t i) const {
    const double from = first(centre(i));
    return from >= 0 && from + 2 <= double(v_.old_size);
  }

  // All write where the elements that result i reads begin, and their weights.
  void nearest(int64_t i) {
    const double half = v_.exact ? 0.5 : 0;
    const double place = v_.single ? double((float(i) + float(half)) * float(v_.step))
                                   : (double(i) + half) * v_.step;
    table_.start[i] = within(__builtin_floor(place), 0, v_.old_size - 1);
    table_.weights[i] = 1;
    table_.first[i + 1] = i + 1;
  }
  // Results [begin, end) of linear interpolation, inside of the borders: a loop in vectors.
  void linear_pairs(int64_t begin, int64_t end) {
    const int64_t at = table_.first[begin];
    double *to = table_.weights + at;
#pragma GCC ivdep
    for (int64_t i = begin; i < end; i++) {
      const double c = centre(i), from = first(c), x = from - c + 0.5 - shift_;
      table_.start[i] = int64_t(int32_t(from));
      to[2 * (i - begin)] = 1 + x;  // x: -1 to 0
      to[2 * (i - begin) + 1] = -x;
      table_.first[i + 1] = at + 2 * (i + 1 - begin);
    }
  }
  void weighted(int64_t i) {
    const double centre = this->centre(i), first = this->first(centre);
    const double last = __builtin_floor(centre + reach_ + 0.5 + shift_);
    const int64_t begin = within(first, 0, v_.old_size - 1),
                  n = within(last, begin + 1, v_.old_size) - begin;
    double *to = table_.weights + table_.first[i];
    table_.start[i] = begin;
    table_.first[i + 1] = table_.first[i] + n;
    const double a = v_.antialias ? -0.5 : -0.75;
    const auto weight = [&](double j) {
      const double x = j - centre + 0.5 - shift_;
      return weight_at(wide_ == 1 ? x : x / wide_, v_.kernel, a);
    };
    if (n == 1) {
      *to = 1;
    } else if (v_.antialias || double(n) == last - first) {
      for (int64_t k = 0; k < n; k++) to[k] = weight(double(begin + k));
    } else {  // those beyond the border are the border's
      for (int64_t k = 0; k < n; k++) to[k] = 0;
      for (double j = first; j < last; j++)
        to[within(j, begin, begin + n - 1) - begin] += weight(j);
    }
    double total = 0;
    for (int64_t k = 0; k < n; k++) total += to[k];
    for (int64_t k = 0; k < n && total != 1; k++) to[k] /= total;
  }

  const Numbers v_;
  double ratio_, wide_, reach_, shift_;
  Table table_;
  Workspace places_, weights_;
};

// Rows become columns: the results that read an element lie side by side, as places increase.
plait_status transpose_table(const plait_call *c, const Table &from, int64_t columns,
                             Workspace *space, Table *to) {
  const int64_t total = from.first[from.rows];
  PLAIT_TRY(space->take(c, uint64_t(2 * columns + 1 + total) * 8));
  to->rows = columns;
  to->start = space->as<int64_t>();
  to->first = to->start + columns;
  to->weights = reinterpret_cast<double *>(to->first + columns + 1);
  for (int64_t j = 0; j <= columns; j++) to->first[j] = 0;
  for (int64_t i = 0; i < from.rows; i++)
    for (int64_t k = 0; k < from.count(i); k++) to->first[from.start[i] + k + 1]++;
  for (int64_t j = 0; j < columns; j++) {
    to->first[j + 1] += to->first[j];
    to->start[j] = -1;
  }
  for (int64_t i = 0; i < from.rows; i++)
    for (int64_t k = 0; k < from.count(i); k++) {
      const int64_t j = from.start[i] + k;
      if (to->start[j] < 0) to->start[j] = i;
      to->weights[to->first[j] + i - to->start[j]] = from.weights[from.first[i] + k];
    }
  for (int64_t j = 0; j < columns; j++)
    if (to->start[j] < 0) to->start[j] = 0;
  return PLAIT_OK;
}

// How elements lie.

struct Layout {
  int64_t outer, old_size, new_size, inner;  // (outer, size, inner) in the order of memory
};

// The operand in the order of the result: its own memory, or a copy.
class Operand {
 public:
  plait_status take(const plait_call *c, const DLTensor *in, const DLTensor *out, int64_t dim) {
    at_ = *in;
    int64_t places[PLAIT_MAX_DIMS];
    for (int d = 0; d < in->ndim; d++) places[d] = d;
    const bool last = !is_contiguous(out);  // channels are last
    for (int d = 1; last && d < in->ndim; d++) places[d] = d + 1 < in->ndim ? d + 1 : 1;
    int64_t step = 1;
    bool same = true;
    layout = {1, in->shape[dim], out->shape[dim], 1};
    bool behind = true;
    for (int i = in->ndim - 1; i >= 0; i--) {
      const int64_t d = places[i], n = in->shape[d];
      strides_[d] = step;
      same &= n == 1 || in->strides[d] == step;
      step *= n;
      if (d == dim)
        behind = false;
      else
        (behind ? layout.inner : layout.outer) *= n;
    }
    if (same || step == 0) return PLAIT_OK;
    const int item = in->dtype.bits / 8;
    PLAIT_TRY(space_.take(c, uint64_t(step) * uint64_t(item)));
    copy_strided(c, space_.as<char>(), strides_, data<char>(in), in->strides, in->shape, in->ndim,
                 item);
    at_.data = space_.as<char>();
    return PLAIT_OK;
  }
  const DLTensor *tensor() const { return &at_; }

  Layout layout{};

 private:
  DLTensor at_{};
  int64_t strides_[PLAIT_MAX_DIMS];
  Workspace space_;
};

// Sums of kAtOnce results.

// Elements of type T that are multiplied as numbers of Number.
template <class T>
struct Plain {
  typedef T Type;
  typedef T Number;
  static PLAIT_INLINE Vec<T> get(const T *from) { return load(from); }
  static PLAIT_INLINE T get_one(T x) { return x; }
  static PLAIT_INLINE T put_one(T x) { return x; }
  static PLAIT_INLINE void put(T *to, const Vec<T> *sums) {
    PLAIT_UNROLL for (int64_t i = 0; i < kAtOnce / kLanes<T>; i++)
        store(to + i * kLanes<T>, sums[i]);
  }
};
template <class H>
struct Rounded {
  typedef uint16_t Type;
  typedef float Number;
  static PLAIT_INLINE Vec<float> get(const uint16_t *from) { return H::eight(from); }
  static PLAIT_INLINE float get_one(uint16_t x) { return H::one(x); }
  static PLAIT_INLINE uint16_t put_one(float x) { return H::rounded(x); }
  static PLAIT_INLINE void put(uint16_t *to, const Vec<float> *sums) {
    float some[kAtOnce];
    memcpy(some, sums, sizeof(some));
    narrow_run<H>(to, some, kAtOnce);
  }
};

// Weighted sums of floating-point numbers.
template <class E>
class Sums {
 public:
  typedef typename E::Type Type;
  plait_status take(const plait_call *c, const Table &table) {
    table_ = table;
    const int64_t n = table.first[table.rows];
    PLAIT_TRY(space_.take(c, uint64_t(n) * sizeof(Number)));
    weights_ = space_.as<Number>();
    for (int64_t i = 0; i < n; i++) weights_[i] = Number(table.weights[i]);
    return PLAIT_OK;
  }
  // Result i of n * kAtOnce lines; `from` has element 0 of them, and each next one `apart` behind.
  template <int n>
  PLAIT_INLINE void sum(Type *to, const Type *from, int64_t apart, int64_t i) const {
    constexpr int64_t w = kLanes<Number>, kEach = kAtOnce / w, kVectors = n * kEach;
    const int64_t taps = table_.count(i);
    const Number *weight = weights_ + table_.first[i];
    from += table_.start[i] * apart;
    Vec<Number> sums[kVectors] = {};
    if (taps)
      PLAIT_UNROLL for (int64_t v = 0; v < kVectors; v++) sums[v] = E::get(from + v * w) * *weight;
    for (int64_t k = 1; k < taps; k++) {
      from += apart;
      PLAIT_UNROLL for (int64_t v = 0; v < kVectors; v++) sums[v] +=
          E::get(from + v * w) * weight[k];
    }
    for (int64_t part = 0; part < n; part++) E::put(to + part * kAtOnce, sums + part * kEach);
  }
  // Result i of one line, with the same bits.
  PLAIT_INLINE Type sum_one(const Type *from, int64_t apart, int64_t i) const {
    const int64_t taps = table_.count(i);
    const Number *weight = weights_ + table_.first[i];
    from += table_.start[i] * apart;
    Number sum = taps ? E::get_one(*from) * *weight : Number(0);
    for (int64_t k = 1; k < taps; k++) sum += E::get_one(from[k * apart]) * weight[k];
    return E::put_one(sum);
  }

 private:
  typedef typename E::Number Number;
  Table table_;
  Number *weights_ = nullptr;
  Workspace space_;
};

// Weighted sums of uint8: pairs of products of 16 bits are added to sums of 32 bits, which are
// rounded to 8 bits. No sum of products leaves 32 bits.
class ByteSums {
 public:
  typedef uint8_t Type;
  plait_status take(const plait_call *c, const Table &table) {
    const int64_t n = table.rows, all = table.first[n];
    PLAIT_TRY(space_.take(c, uint64_t(n + 1) * sizeof(int64_t) + uint64_t(all + n) * 4));
    first_ = space_.as<int64_t>();
    pairs_ = reinterpret_cast<Pair *>(first_ + n + 1);
    double largest = 0;
    for (int64_t k = 0; k < all; k++)
      largest = table.weights[k] > largest ? table.weights[k] : largest;
    bits_ = 0;
    while (bits_ < 22 && int64_t(0.5 + largest * double(int64_t(2) << bits_)) < 32768) bits_++;
    int64_t at = 0;
    for (int64_t i = 0; i < n; i++) {
      first_[i] = at;
      const double *w = table.weights + table.first[i];
      for (int64_t k = 0; k < table.count(i); k += 2)
        pairs_[at++] = {whole(w[k]), k + 1 < table.count(i) ? whole(w[k + 1]) : int16_t(0)};
    }
    first_[n] = at;
    table_ = table;
    return PLAIT_OK;
  }
  template <int n>
  PLAIT_INLINE void sum(uint8_t *to, const uint8_t *from, int64_t apart, int64_t i) const {
    const int64_t taps = table_.count(i);
    const Pair *pair = pairs_ + first_[i];
    from += table_.start[i] * apart;
    Lanes sums[n];
    for (int64_t k = 0; k < taps; k += 2, from += 2 * apart) {
      const uint8_t *next = k + 1 < taps ? from + apart : from;
      PLAIT_UNROLL for (int v = 0; v < n; v++) sums[v].add(from + v * kAtOnce, next + v * kAtOnce,
                                                           *pair);
      pair++;
    }
    PLAIT_UNROLL for (int v = 0; v < n; v++) sums[v].round(to + v * kAtOnce, bits_);
  }
  PLAIT_INLINE uint8_t sum_one(const uint8_t *from, int64_t apart, int64_t i) const {
    const Pair *pair = pairs_ + first_[i];
    from += table_.start[i] * apart;
    int32_t sum = (1 << bits_) >> 1;
    for (int64_t k = 0; k < table_.count(i); k++)
      sum += from[k * apart] * (k % 2 ? pair[k / 2].second : pair[k / 2].first);
    sum >>= bits_;
    return uint8_t(sum < 0 ? 0 : sum > 255 ? 255 : sum);
  }

 private:
  struct Pair {
    int16_t first, second;
  };
  int16_t whole(double w) const {
    return int16_t(__builtin_copysign(0.5, w) + w * double(int64_t(1) << bits_));
  }

#if defined(__AVX2__)
  struct Lanes {
    __m256i low = _mm256_setzero_si256(), high = low;
    PLAIT_INLINE void add(const uint8_t *p, const uint8_t *q, Pair pair) {
      const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i *>(p)),
                    b = _mm_loadu_si128(reinterpret_cast<const __m128i *>(q));
      int32_t both;
      memcpy(&both, &pair, 4);
      const __m256i w = _mm256_set1_epi32(both);
      low = _mm256_add_epi32(low,
                             _mm256_madd_epi16(_mm256_cvtepu8_epi16(_mm_unpacklo_epi8(a, b)), w));
      high = _mm256_add_epi32(high,
                              _mm256_madd_epi16(_mm256_cvtepu8_epi16(_mm_unpackhi_epi8(a, b)), w));
    }
    PLAIT_INLINE void round(uint8_t *to, int bits) const {
      const __m256i half = _mm256_set1_epi32((1 << bits) >> 1);
      const __m128i shift = _mm_cvtsi32_si128(bits);
      const __m256i a = _mm256_sra_epi32(_mm256_add_epi32(low, half), shift),
                    b = _mm256_sra_epi32(_mm256_add_epi32(high, half), shift);
      const __m256i both = _mm256_permute4x64_epi64(_mm256_packs_epi32(a, b), 0xd8);
      const __m128i bytes =
          _mm_packus_epi16(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1));
      _mm_storeu_si128(reinterpret_cast<__m128i *>(to), bytes);
    }
  };
#elif defined(__SSE2__)
  struct Lanes {
    __m128i part[4] = {_mm_setzero_si128(), _mm_setzero_si128(), _mm_setzero_si128(),
                       _mm_setzero_si128()};
    PLAIT_INLINE void add(const uint8_t *p, const uint8_t *q, Pair pair) {
      const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i *>(p)),
                    b = _mm_loadu_si128(reinterpret_cast<const __m128i *>(q)),
                    zero = _mm_setzero_si128();
      int32_t both;
      memcpy(&both, &pair, 4);
      const __m128i w = _mm_set1_epi32(both);
      const __m128i low = _mm_unpacklo_epi8(a, b), high = _mm_unpackhi_epi8(a, b);
      const __m128i wide[4] = {_mm_unpacklo_epi8(low, zero), _mm_unpackhi_epi8(low, zero),
                               _mm_unpacklo_epi8(high, zero), _mm_unpackhi_epi8(high, zero)};
      for (int i = 0; i < 4; i++) part[i] = _mm_add_epi32(part[i], _mm_madd_epi16(wide[i], w));
    }
    PLAIT_INLINE void round(uint8_t *to, int bits) const {
      const __m128i half = _mm_set1_epi32((1 << bits) >> 1), shift = _mm_cvtsi32_si128(bits);
      __m128i r[4];
      for (int i = 0; i < 4; i++) r[i] = _mm_sra_epi32(_mm_add_epi32(part[i], half), shift);
      _mm_storeu_si128(reinterpret_cast<__m128i *>(to),
                       _mm_packus_epi16(_mm_packs_epi32(r[0], r[1]), _mm_packs_epi32(r[2], r[3])));
    }
  };
#else
  struct Lanes {
    int32_t part[kAtOnce] = {};
    PLAIT_INLINE void add(const uint8_t *p, const uint8_t *q, Pair pair) {
      for (int i = 0; i < kAtOnce; i++) part[i] += p[i] * pair.first + q[i] * pair.second;
    }
    PLAIT_INLINE void round(uint8_t *to, int bits) const {
      for (int i = 0; i < kAtOnce; i++) {
        const int32_t x = (part[i] + ((1 << bits) >> 1)) >> bits;
        to[i] = uint8_t(x < 0 ? 0 : x > 255 ? 255 : x);
      }
    }
  };
#endif

  Table table_;
  int64_t *first_ = nullptr;
  Pair *pairs_ = nullptr;
  int bits_ = 0;
  Workspace space_;
};

// All results.

// Result i of `lines` lines side by side, of which there are kAtOnce at least.
template <class S>
PLAIT_INLINE void sum_line(const S &sums, typename S::Type *to, const typename S::Type *from,
                           int64_t lines, int64_t i) {
  int64_t j = 0;
  for (; j + 3 * kAtOnce <= lines; j += 3 * kAtOnce)
    sums.template sum<3>(to + j, from + j, lines, i);
  for (; j < lines; j += kAtOnce) {
    const int64_t at = least(j, lines - kAtOnce);  // the last ones may be computed twice
    sums.template sum<1>(to + at, from + at, lines, i);
  }
}

// Results that lie side by side have the same weights.
template <class S>
void sum_lines(const plait_call *c, const S &sums, const Layout &v, double taps,
               const typename S::Type *x, typename S::Type *y) {
  const int64_t rows = most(1, int64_t(double(kUnit) / (double(v.inner) * (taps + 1))));
  const int64_t parts = ceil_div(v.new_size, rows);
  const int64_t some = most(1, rows / v.new_size);
  parallel_ranges(c, v.outer * parts, parts == 1 ? some : 1, [&](int64_t begin, int64_t end) {
    for (int64_t unit = begin; unit < end; unit++) {
      const int64_t o = unit / parts, from = unit % parts * rows;
      const typename S::Type *in = x + o * v.old_size * v.inner;
      for (int64_t i = from; i < least(from + rows, v.new_size); i++) {
        typename S::Type *out = y + (o * v.new_size + i) * v.inner;
        sum_line(sums, out, in, v.inner, i);
      }
    }
  });
}

// Rows of which each result has other weights: kAtOnce rows are transposed.
template <class S>
plait_status sum_rows(const plait_call *c, const S &sums, const Table &table, const Layout &v,
                      const typename S::Type *x, typename S::Type *y) {
  typedef typename S::Type T;
  const int64_t line = kAtOnce * v.inner;  // elements of all rows at one place
  const int64_t ratio = ceil_div(most(v.old_size, v.new_size), v.new_size);
  const int64_t block = most(1, least(v.new_size, kTile / (line * int64_t(sizeof(T)) * ratio)));
  const int64_t blocks = ceil_div(v.new_size, block), groups = ceil_div(v.outer, kAtOnce);
  const auto span = [&](int64_t b, int64_t *begin, int64_t *end) {
    *begin = v.old_size, *end = 0;
    for (int64_t i = b * block; i < least((b + 1) * block, v.new_size); i++) {
      if (!table.count(i)) continue;
      *begin = least(*begin, table.start[i]);
      *end = most(*end, table.start[i] + table.count(i));
    }
    if (*begin > *end) *begin = *end;
  };
  int64_t longest = 0;
  for (int64_t b = 0; b < blocks; b++) {
    int64_t begin, end;
    span(b, &begin, &end);
    longest = most(longest, end - begin);
  }
  return parallel_with_memory<T>(
      c, groups * blocks, kUnit / ((longest + block) * line) + 1, (longest + block) * line,
      [&](int64_t first, int64_t last, T *memory) {
        T *result = memory + longest * line;
        if (v.outer % kAtOnce) memset(memory, 0, size_t(longest * line) * sizeof(T));
        for (int64_t unit = first; unit < last; unit++) {
          const int64_t row = unit / blocks * kAtOnce, b = unit % blocks, from = b * block;
          const int64_t rows = least(kAtOnce, v.outer - row), n = least(block, v.new_size - from);
          int64_t begin, end;
          span(b, &begin, &end);
          const int64_t old_row = v.old_size * v.inner, new_row = v.new_size * v.inner;
          const T *in = x + row * old_row + begin * v.inner;
          T *out = y + row * new_row + from * v.inner;
          transpose_block(reinterpret_cast<char *>(memory), kAtOnce,
                          reinterpret_cast<const char *>(in), old_row, rows,
                          (end - begin) * v.inner, sizeof(T));
          for (int64_t i = 0; i < n; i++)
            sum_line(sums, result + i * line, memory - begin * line, line, from + i);
          transpose_block(reinterpret_cast<char *>(out), new_row, reinterpret_cast<char *>(result),
                          kAtOnce, n * v.inner, rows, sizeof(T));
        }
      });
}

// Few rows, one result at a time: transposed, they would be zeros for the most part.
template <class S>
void sum_few_rows(const plait_call *c, const S &sums, const Layout &v, double taps,
                  const typename S::Type *x, typename S::Type *y) {
  const int64_t grain = most(1, int64_t(double(kUnit) / (double(v.inner) * (taps + 1)) / 8));
  parallel_ranges(c, v.outer * v.new_size, grain, [&](int64_t begin, int64_t end) {
    for (int64_t n; begin < end; begin += n) {
      const int64_t o = begin / v.new_size, from = begin % v.new_size;
      n = least(end - begin, v.new_size - from);
      const typename S::Type *in = x + o * v.old_size * v.inner;
      typename S::Type *out = y + begin * v.inner;
      if (v.inner == 1)
        for (int64_t i = 0; i < n; i++) out[i] = sums.sum_one(in, 1, from + i);
      else
        for (int64_t i = 0; i < n * v.inner; i++)
          out[i] = sums.sum_one(in + i % v.inner, v.inner, from + i / v.inner);
    }
  });
}

template <class S>
plait_status sum_all(const plait_call *c, const Table &table, Layout v, const void *x, void *y) {
  typedef typename S::Type T;
  S sums;
  PLAIT_TRY(sums.take(c, table));
  const double taps = double(table.first[table.rows]) / double(table.rows);
  const T *in = static_cast<const T *>(x);
  T *out = static_cast<T *>(y);
  if (v.inner >= kAtOnce) {
    sum_lines(c, sums, v, taps, in, out);
    return PLAIT_OK;
  }
  Layout few = v;
  few.outer = v.outer % kAtOnce < kAtOnce / 2 ? v.outer % kAtOnce : 0;
  v.outer -= few.outer;
  if (v.outer) PLAIT_TRY(sum_rows(c, sums, table, v, in, out));
  const int64_t rows = v.outer * v.inner;
  sum_few_rows(c, sums, few, taps, in + rows * v.old_size, out + rows * v.new_size);
  return PLAIT_OK;
}

plait_status sum_any(const plait_call *c, const Table &table, Layout v, const DLTensor *in,
                     const DLTensor *out) {
  switch (kind(out->dtype)) {
    case U8: return sum_all<ByteSums>(c, table, v, in->data, out->data);
    case F16: return sum_all<Sums<Rounded<Half>>>(c, table, v, in->data, out->data);
    case BF16: return sum_all<Sums<Rounded<Bfloat>>>(c, table, v, in->data, out->data);
    case C64: v.inner *= 2; [[fallthrough]];
    case F32: return sum_all<Sums<Plain<float>>>(c, table, v, in->data, out->data);
    case C128: v.inner *= 2; [[fallthrough]];
    case F64: return sum_all<Sums<Plain<double>>>(c, table, v, in->data, out->data);
    default: return PLAIT_DECLINE;
  }
}

template <int inner, class T>
PLAIT_INLINE void select_few(const int64_t *start, int64_t from, int64_t to, const T *in, T *out) {
  for (int64_t i = from; i < to; i++) {
    T some[inner];
    memcpy(some, in + start[i] * inner, sizeof(some));
    memcpy(out + i * inner, some, sizeof(some));
  }
}

// Copies of elements, `inner` side by side.
template <class T>
void select(const plait_call *c, const Table &table, const Layout &v, const T *x, T *y) {
  const int64_t rows = most(1, kUnit / v.inner), parts = ceil_div(v.new_size, rows);
  const int64_t some = most(1, rows / v.new_size);
  parallel_ranges(c, v.outer * parts, parts == 1 ? some : 1, [&](int64_t begin, int64_t end) {
    for (int64_t unit = begin; unit < end; unit++) {
      const int64_t o = unit / parts, from = unit % parts * rows;
      const int64_t to = least(from + rows, v.new_size);
      const T *in = x + o * v.old_size * v.inner;
      T *out = y + o * v.new_size * v.inner;
      switch (v.inner) {
        case 1: select_few<1>(table.start, from, to, in, out); break;
        case 2: select_few<2>(table.start, from, to, in, out); break;
        case 3: select_few<3>(table.start, from, to, in, out); break;
        case 4: select_few<4>(table.start, from, to, in, out); break;
        case 16: select_few<16>(table.start, from, to, in, out); break;
        default:
          for (int64_t i = from; i < to; i++)
            memcpy(out + i * v.inner, in + table.start[i] * v.inner, size_t(v.inner) * sizeof(T));
      }
    }
  });
}

Numbers numbers(const plait_call *c, int64_t old_size, int64_t new_size) {
  Numbers v{};
  v.old_size = old_size, v.new_size = new_size;
  v.step = real(c, 3);
  v.exact = text_is(c, 4, "nearest-exact");
  v.nearest = v.exact || text_is(c, 4, "nearest");
  v.kernel = text_is(c, 4, "cubic")     ? Kernel::kCubic
             : text_is(c, 4, "lanczos") ? Kernel::kLanczos
                                        : Kernel::kLinear;
  v.align_corners = integer(c, 5), v.antialias = integer(c, 6);
  v.single = kind(result(c)->dtype) != F64;
  return v;
}

// (input, dim, size, step, mode, align_corners, antialias)
plait_status resample(plait_call *c) {
  const DLTensor *in = tensor(c, 0), *out = result(c);
  if (numel(out) == 0) return PLAIT_OK;
  const int64_t dim = wrapped(integer(c, 1), in->ndim);
  Operand x;
  PLAIT_TRY(x.take(c, in, out, dim));
  const Numbers v = numbers(c, in->shape[dim], out->shape[dim]);
  Weights weights(v);
  PLAIT_TRY(weights.take(c));
  if (!v.nearest) return sum_any(c, weights.table(), x.layout, x.tensor(), out);
  const DLTensor *from = x.tensor();
  PLAIT_BY_SIZE(in->dtype.bits / 8,
                select(c, weights.table(), x.layout, data<T>(from), data<T>(out)))
  return PLAIT_OK;
}

// (grad, dim, size, step, mode, align_corners, antialias)
plait_status resample_backward(plait_call *c) {
  const DLTensor *grad = tensor(c, 0), *out = result(c);
  if (numel(out) == 0) return PLAIT_OK;
  const int64_t dim = wrapped(integer(c, 1), grad->ndim);
  Operand x;
  PLAIT_TRY(x.take(c, grad, out, dim));
  Weights weights(numbers(c, out->shape[dim], grad->shape[dim]));
  PLAIT_TRY(weights.take(c));
  Workspace space;
  Table table;
  PLAIT_TRY(transpose_table(c, weights.table(), out->shape[dim], &space, &table));
  return sum_any(c, table, x.layout, x.tensor(), out);
}

PLAIT_KERNEL("resample", resample);
PLAIT_KERNEL("resample_backward", resample_backward);

}  // namespace
}  // namespace plait::core
