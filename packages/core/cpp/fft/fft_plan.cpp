#include "fft/fft_plan.h"

#include <plait/fork.hpp>

#include <cstdlib>
#include <mutex>

#include "fft/fft_line.h"

namespace plait::core::fft {
namespace {

// The sine and the cosine of pi / 4 * q / n for 0 <= q <= n, by their series at 0. The angle has
// two parts, so that its rounding is not lost.
Root first_octant(int64_t q, int64_t n) {
  const double high_turn = 0x1.921fb54442d18p-1, low_turn = 0x1.1a62633145c07p-55;  // pi / 4
  const double ratio = double(q) / double(n);
  const double ratio_rest = -__builtin_fma(ratio, double(n), -double(q)) / double(n);
  const double a = high_turn * ratio;
  const double rest =
      __builtin_fma(high_turn, ratio, -a) + (low_turn * ratio + high_turn * ratio_rest);
  const double z = a * a;
  double s = 1.0 / 355687428096000, c = 1.0 / 20922789888000;  // 1 / 17!, 1 / 16!
  s = s * z - 1.0 / 1307674368000;
  s = s * z + 1.0 / 6227020800;
  s = s * z - 1.0 / 39916800;
  s = s * z + 1.0 / 362880;
  s = s * z - 1.0 / 5040;
  s = s * z + 1.0 / 120;
  s = s * z - 1.0 / 6;
  c = c * z - 1.0 / 87178291200;
  c = c * z + 1.0 / 479001600;
  c = c * z - 1.0 / 3628800;
  c = c * z + 1.0 / 40320;
  c = c * z - 1.0 / 720;
  c = c * z + 1.0 / 24;
  const double half = 0.5 * z, w = 1 - half;
  return {w + (((1 - w) - half) + (z * z * c - a * rest)), a + (rest * (1 - half) + a * z * s)};
}

}  // namespace

Root root_of_unity(int64_t k, int64_t n) {
  const int64_t octant = 8 * k / n, rest = 8 * k - octant * n;
  const Root r = first_octant(octant & 1 ? n - rest : rest, n);
  // the cosine and the sine of the distance to the nearest axis
  switch (octant) {
    case 0: return {r.re, -r.im};
    case 1: return {r.im, -r.re};
    case 2: return {-r.im, -r.re};
    case 3: return {-r.re, -r.im};
    case 4: return {-r.re, r.im};
    case 5: return {-r.im, r.re};
    case 6: return {r.im, r.re};
    default: return {r.re, r.im};
  }
}

bool has_small_factors(int64_t n) {
  for (int64_t p = 2; p <= kMostRadix; p++)
    while (n % p == 0) n /= p;
  return n == 1;
}

namespace {

constexpr uint64_t kMostBytes = uint64_t(32) << 20;  // of all plans that are kept
constexpr int kSlots = 24;

// A block of memory that is handed out in parts of whole cache lines.
class Memory {
 public:
  explicit Memory(void *start) : at_(static_cast<char *>(start)) {}
  template <class T>
  T *take(int64_t n) {
    T *result = reinterpret_cast<T *>(at_);
    at_ += (uint64_t(n) * sizeof(T) + 63) / 64 * 64;
    return result;
  }
  char *end() const { return at_; }

 private:
  char *at_;
};

template <class T>
void put_root(T *to, int64_t k, int64_t n) {
  const Root r = root_of_unity(k, n);
  to[0] = T(r.re);
  to[1] = T(r.im);
}

// Radices of 8 and 4 have the fewest passes; the largest comes last, where it needs no roots.
int radices(int64_t n, int *radix) {
  int count = 0;
  for (const int r : {3, 5})
    for (; n % r == 0; n /= r) radix[count++] = r;
  for (int r = 7; r <= kMostRadix && (n & (n - 1)); r += 2)
    for (; n % r == 0; n /= r) radix[count++] = r;
  for (; n % 8 == 0 && n != 16; n /= 8) radix[count++] = 8;
  for (; n % 4 == 0; n /= 4) radix[count++] = 4;
  if (n == 2) radix[count++] = 2;
  return count;
}

// The length of a convolution that a line of n elements is computed with.
template <class T>
int64_t convolution_length(int64_t n) {
  constexpr int64_t unit = kLanes<T> * kLanes<T>;
  int64_t best = 0;
  for (const int64_t odd : {1, 3, 5}) {
    int64_t m = unit * odd;
    while (m < 2 * n - 1) m *= 2;
    if (best == 0 || m < best) best = m;
  }
  return best;
}

template <class T>
struct Kept : Plan<T> {
  uint64_t bytes;
  PlanUse<T> use_of_inner;
};

// Fills a plan's tables, or without memory (NULL) counts their bytes.
template <class T>
uint64_t fill(Plan<T> &p, char *start) {
  Memory memory(start);
  constexpr int64_t lanes = kLanes<T>;
  const bool counts = start == nullptr;
  int64_t rest = p.length, before = 1;
  for (int i = 0; i < p.passes; i++) {
    const int radix = p.radix[i];
    const int64_t whole = rest;
    rest /= radix;
    T *w = memory.take<T>(2 * (rest + 1) * (radix - 1));
    p.twiddles[i] = w;
    if (counts) continue;
    for (int64_t j = 0; j < rest; j++)
      for (int k = 1; k < radix; k++, w += 2) put_root(w, j * k % whole, whole);
    for (int k = 1; k < radix; k++, w += 2) put_root(w, k, radix);
    before *= radix;
  }
  if (p.form == Split) {
    const int64_t padded = (p.length + lanes - 1) / lanes * lanes;
    T *w = memory.take<T>(2 * lanes * padded);
    p.joining = w;
    for (int64_t k = 0; k < padded && !counts; k++, w += 2 * lanes)
      for (int64_t lane = 0; lane < lanes; lane++) {
        const Root r = root_of_unity(lane * k % p.n, p.n);
        w[lane] = T(r.re);
        w[lanes + lane] = T(r.im);
      }
  }
  T *halves = memory.take<T>(2 * (p.n + lanes));
  p.halves = halves;
  for (int64_t k = 0; k <= p.n && !counts; k++) put_root(halves + 2 * k, k, 2 * p.n);
  if (p.form == Chirp) {
    T *chirp = memory.take<T>(2 * p.n);
    p.chirp = chirp;
    for (int64_t j = 0, square = 0; j < p.n && !counts; j++) {
      put_root(chirp + 2 * j, square, 2 * p.n);
      square = (square + 2 * j + 1) % (2 * p.n);
    }
    p.chirp_transform = memory.take<T>(2 * (counts ? convolution_length<T>(p.n) : p.inner->n));
  }
  return uint64_t(memory.end() - start);
}

// The transform of the conjugate chirp, wrapped around, over the convolution's length.
template <class T>
bool transform_chirp(Plan<T> &p) {
  const int64_t m = p.inner->n;
  T *to = const_cast<T *>(p.chirp_transform);
  void *space = std::malloc(scratch_bytes(*p.inner));
  if (!space) return false;
  memset(to, 0, uint64_t(2 * m) * sizeof(T));
  for (int64_t j = 0; j < p.n; j++)
    for (const int64_t k : {j, (m - j) % m}) {
      to[2 * k] = p.chirp[2 * j];
      to[2 * k + 1] = -p.chirp[2 * j + 1];
    }
  transform_line(*p.inner, to, to, static_cast<T *>(space), false, T(1) / T(m));
  std::free(space);
  return true;
}

template <class T>
void drop(Kept<T> *plan) {
  plan->~Kept<T>();
  std::free(plan);
}

template <class T>
Kept<T> *make(int64_t n, Form form) {
  Plan<T> p{};
  p.n = n;
  p.form = form;
  p.length = form == Chirp ? 1 : form == Split ? n / kLanes<T> : n;
  p.passes = radices(p.length, p.radix);
  constexpr uint64_t head = (sizeof(Kept<T>) + 63) / 64 * 64;
  const uint64_t bytes = head + fill(p, nullptr);
  void *space = nullptr;
  if (posix_memalign(&space, 64, bytes) != 0) return nullptr;
  Kept<T> *plan = new (space) Kept<T>{};
  plan->bytes = bytes;
  bool made = true;
  if (form == Chirp) {
    made = plan->use_of_inner.take(convolution_length<T>(n), Split);
    if (made) p.inner = &*plan->use_of_inner;
  }
  if (made) {
    fill(p, static_cast<char *>(space) + head);
    if (form == Chirp) made = transform_chirp(p);
  }
  if (!made) {
    drop(plan);
    return nullptr;
  }
  static_cast<Plan<T> &>(*plan) = p;
  return plan;
}

ForkMutex mutex;
using Lock = std::lock_guard<ForkMutex>;

template <class T>
struct Slot {
  Kept<T> *plan;
  int users;
  uint64_t last;  // call that used it
};
template <class T>
Slot<T> slots[kSlots];
template <class T>
uint64_t calls;

// Keeps a plan in the slot that was not used for the longest time; -1: it is not kept.
template <class T>
int keep(Kept<T> *plan, Kept<T> **dropped, int &drops) {
  if (plan->bytes > kMostBytes / 4) return -1;
  for (;;) {
    uint64_t bytes = plan->bytes;
    int oldest = -1, empty = -1;
    for (int i = 0; i < kSlots; i++) {
      const Slot<T> &s = slots<T>[i];
      if (!s.plan) {
        empty = i;
        continue;
      }
      bytes += s.plan->bytes;
      if (s.users == 0 && (oldest < 0 || s.last < slots<T>[oldest].last)) oldest = i;
    }
    if (empty >= 0 && bytes <= kMostBytes) {
      slots<T>[empty] = {plan, 1, ++calls<T>};
      return empty;
    }
    if (oldest < 0) return -1;
    dropped[drops++] = slots<T>[oldest].plan;
    slots<T>[oldest].plan = nullptr;
  }
}

}  // namespace

template <class T>
bool PlanUse<T>::take(int64_t n, Form form) {
  {
    const Lock lock(mutex);
    for (int i = 0; i < kSlots; i++) {
      Slot<T> &s = slots<T>[i];
      if (!s.plan || s.plan->n != n || s.plan->form != form) continue;
      s.users++;
      s.last = ++calls<T>;
      plan_ = s.plan;
      slot_ = i;
      return true;
    }
  }
  Kept<T> *plan = make<T>(n, form);
  if (!plan) return false;
  plan_ = plan;
  Kept<T> *dropped[kSlots];
  int drops = 0;
  {
    const Lock lock(mutex);
    slot_ = keep(plan, dropped, drops);
  }
  for (int i = 0; i < drops; i++) drop(dropped[i]);
  return true;
}

template <class T>
PlanUse<T>::~PlanUse() {
  if (!plan_) return;
  if (slot_ < 0) {
    drop(static_cast<Kept<T> *>(const_cast<Plan<T> *>(plan_)));
  } else {
    const Lock lock(mutex);
    slots<T>[slot_].users--;
  }
}

template class PlanUse<float>;
template class PlanUse<double>;

}  // namespace plait::core::fft
