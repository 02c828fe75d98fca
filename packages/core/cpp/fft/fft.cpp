// Fourier transforms along dimensions of tensors.
#include "fft/fft_line.h"
#include "fft/fft_real.h"
#include "fft/fft_rows.h"
#include "kernel/settings.h"
#include "pointwise/math.h"

namespace plait::core::fft {
namespace {

// A tensor of numbers: strides and shape count elements, of `width` numbers.
template <class T>
struct View {
  T *data;
  int width, ndim;
  int64_t shape[PLAIT_MAX_DIMS], strides[PLAIT_MAX_DIMS];

  View(T *start, int numbers, const DLTensor *t, const int64_t *steps)
      : data(start), width(numbers), ndim(t->ndim) {
    for (int i = 0; i < ndim; i++) {
      shape[i] = t->shape[i];
      strides[i] = steps ? steps[i] : t->strides[i];
    }
  }
};

// The lines along a dimension: their first elements lie in steps, outermost dimension first. Where
// two dimensions lie as one they are one.
template <class T>
struct Lines {
  T *data;
  int width, ndim = 0;
  int64_t step, count = 1, shape[PLAIT_MAX_DIMS], steps[PLAIT_MAX_DIMS];

  Lines(const View<T> &view, int dim)
      : data(view.data), width(view.width), step(view.strides[dim]) {
    for (int i = 0; i < view.ndim; i++) {
      const int64_t n = view.shape[i], by = view.strides[i];
      if (i == dim || n == 1) continue;
      count *= n;
      if (ndim && steps[ndim - 1] == n * by) {
        shape[ndim - 1] *= n;
        steps[ndim - 1] = by;
      } else {
        shape[ndim] = n;
        steps[ndim++] = by;
      }
    }
  }
  T *at(int64_t index) const {
    int64_t offset = 0;
    for (int i = ndim - 1; i > 0; i--) {
      offset += index % shape[i] * steps[i];
      index /= shape[i];
    }
    if (ndim) offset += index * steps[0];
    return data + offset * width;
  }
  Strands<T> strands(int64_t first) const {
    Strands<T> s;
    s.step = step * width;
    s.is_complex = width == 2;
    s.count = int(count - first < kLanes<T> ? count - first : kLanes<T>);
    for (int i = 0; i < int(kLanes<T>); i++) s.line[i] = i < s.count ? at(first + i) : s.line[0];
    return s;
  }
};

enum Numbers { ComplexToComplex, RealToComplex, ComplexToReal };

// Transforms of all lines along a dimension.
template <class T>
struct Job {
  Numbers numbers;
  Lines<T> from, to;
  int64_t n;  // elements of a line, of the real side where there is one
  bool inverse, mirrored;  // mirrored: the result has all n frequencies
  T scale;
  // set by `choose`
  Form form = Whole;
  bool halved = false;  // real numbers in pairs
  int64_t length() const { return halved ? n / 2 : n; }
  int64_t frequencies() const { return mirrored ? n : n / 2 + 1; }
};

template <class T>
void choose(Job<T> &job) {
  constexpr int64_t lanes = kLanes<T>;
  const auto splits = [](int64_t n) { return n % lanes == 0 && n >= 2 * lanes; };
  const bool dense = job.from.step == 1 && job.to.step == 1;
  // rounding may not depend on the number of lines in this mode
  const bool strict = reproducible() || batch_invariant();
  const bool few = !strict && job.to.count * 2 <= lanes;
  job.halved = job.numbers != ComplexToComplex && job.n % 2 == 0;
  if (job.halved && few && !splits(job.n / 2) && splits(job.n) && has_small_factors(job.n))
    job.halved = false;
  const int64_t n = job.length();
  if (!has_small_factors(n))
    job.form = Chirp;
  else if (splits(n) && (few || (n >= lanes * lanes && (dense || strict))))
    job.form = Split;
}

// Numbers that a line may have outside of the tensors, in whole cache lines.
constexpr int64_t outside(int64_t n) { return (2 * (n + 2) + 15) / 16 * 16; }

// Bytes for three such lines and for what the transforms need.
template <class T>
uint64_t room_of_line(const Job<T> &job, const Plan<T> &plan) {
  return uint64_t(3 * outside(job.n)) * sizeof(T) + scratch_bytes(plan);
}

// One line; `room` has memory for all that is not dense.
template <class T>
void one_line(const Job<T> &job, const Plan<T> &plan, T *from, T *to, T *room) {
  const int64_t n = job.n, h = n / 2;
  const int64_t from_step = job.from.step, to_step = job.to.step;
  const int64_t inputs = job.numbers == ComplexToReal ? h + 1 : n;
  const int64_t outputs = job.numbers == RealToComplex ? job.frequencies() : n;
  const int64_t part = outside(n);
  T *input = room, *z = room + part, *output = z + part, *scratch = output + part;
  const T *x = from;
  if (from_step != 1) {
    const int w = job.from.width;
    for (int64_t j = 0; j < inputs; j++)
      for (int i = 0; i < w; i++) input[j * w + i] = from[j * from_step * w + i];
    x = input;
  }
  T *y = to_step == 1 ? to : output;
  if (job.numbers == ComplexToComplex) {
    transform_line(plan, x, y, scratch, job.inverse, job.scale);
  } else if (job.numbers == RealToComplex) {
    if (job.halved) {
      transform_line(plan, x, z, scratch, false, job.scale / 2);
      finish_real_line(z, y, h, plan.halves, job.mirrored);
    } else {
      for (int64_t j = 0; j < n; j++) {
        z[2 * j] = x[j];
        z[2 * j + 1] = 0;
      }
      transform_line(plan, z, z, scratch, false, job.scale);
      memcpy(y, z, uint64_t(2 * outputs) * sizeof(T));
      y[1] = 0;
    }
  } else if (job.halved) {
    prepare_real_line(x, z, h, plan.halves);
    transform_line(plan, z, y, scratch, true, job.scale);
  } else {
    z[0] = x[0];
    z[1] = 0;
    for (int64_t j = 1; j < inputs; j++) {
      z[2 * j] = z[2 * (n - j)] = x[2 * j];
      z[2 * j + 1] = x[2 * j + 1];
      z[2 * (n - j) + 1] = -x[2 * j + 1];
    }
    if (n % 2 == 0) z[n + 1] = 0;
    transform_line(plan, z, z, scratch, true, job.scale);
    for (int64_t j = 0; j < n; j++) y[j] = z[2 * j];
  }
  if (to_step == 1) return;
  const int w = job.to.width;
  for (int64_t j = 0; j < outputs; j++)
    for (int i = 0; i < w; i++) to[j * to_step * w + i] = output[j * w + i];
}

// As many lines as there are lanes; x and y have room for a line of pairs each.
template <class T>
void some_lines(const Job<T> &job, const Plan<T> &plan, const Strands<T> &from,
                const Strands<T> &to, T *x, T *y) {
  constexpr int64_t lanes = kLanes<T>;
  const int64_t n = job.n, h = n / 2;
  const auto plain = [](int64_t r) { return r; };
  const auto exchange = [](int64_t r) { return r ^ 1; };
  if (job.numbers == ComplexToComplex) {
    if (job.inverse) {
      read_rows(from, 2 * n, x, job.scale, exchange);
      write_rows(to, 2 * n, run_passes(plan, x, y), exchange);
    } else {
      read_rows(from, 2 * n, x, job.scale, plain);
      write_rows(to, 2 * n, run_passes(plan, x, y), plain);
    }
  } else if (job.numbers == RealToComplex) {
    const int64_t rows = 2 * job.frequencies();
    if (job.halved) {
      read_rows(from, n, x, job.scale / 2, plain);
      T *z = run_passes(plan, x, y), *other = z == x ? y : x;
      finish_real_rows(z, other, h, plan.halves, job.mirrored);
      write_rows(to, rows, other, plain);
    } else {
      read_rows(from, n, x, job.scale, [](int64_t r) { return 2 * r; });
      for (int64_t j = 0; j < n; j++) store(x + (2 * j + 1) * lanes, Vec<T>{});
      T *z = run_passes(plan, x, y);
      store(z + lanes, Vec<T>{});
      write_rows(to, rows, z, plain);
    }
  } else if (job.halved) {
    read_rows(from, 2 * (h + 1), y, job.scale, plain);
    prepare_real_rows(y, x, h, plan.halves);
    write_rows(to, n, run_passes(plan, x, y), exchange);
  } else {
    read_rows(from, 2 * (h + 1), x, job.scale, exchange);
    store(x, Vec<T>{});
    for (int64_t j = 1; j <= h; j++) {
      const Pair<T> v = at(x, j);
      put(x, n - j, Pair<T>{-v.re, v.im});  // the parts are exchanged
    }
    write_rows(to, n, run_passes(plan, x, y), [](int64_t r) { return 2 * r + 1; });
  }
}

template <class T>
plait_status transform(const plait_call *c, Job<T> job) {
  choose(job);
  PlanUse<T> use;
  if (!use.take(job.length(), job.form)) return Workspace::out_of_memory(c, 0);
  const Plan<T> &plan = *use;
  constexpr int64_t lanes = kLanes<T>;
  const int64_t lines = job.to.count, pairs = job.n + 2;
  const bool whole = job.form == Whole;
  const uint64_t set = uint64_t(pairs * 2 * lanes) * sizeof(T);
  const uint64_t room = whole ? 2 * set : room_of_line(job, plan);
  const int64_t each = whole ? lanes : 1, count = ceil_div(lines, each);
  bool failed = false;
  parallel_ranges(c, count, kSerial / 4 / (job.n * each) + 1, [&](int64_t begin, int64_t end) {
    Workspace space;
    if (!space.try_take(room)) return __atomic_store_n(&failed, true, __ATOMIC_RELAXED);
    T *memory = space.as<T>();
    for (int64_t i = begin; i < end; i++) {
      if (whole)
        some_lines(job, plan, job.from.strands(i * lanes), job.to.strands(i * lanes), memory,
                   memory + pairs * 2 * lanes);
      else
        one_line(job, plan, job.from.at(i), job.to.at(i), memory);
    }
  });
  return failed ? Workspace::out_of_memory(c, room) : PLAIT_OK;
}

// X[-k] = conj(X[k]) for the second half of the last of the transformed dimensions.
template <class T>
void mirror(const plait_call *c, const View<T> &x, const int64_t *dims, int count) {
  const int last = int(dims[count - 1]);
  const int64_t n = x.shape[last];
  int64_t lines = 1;
  for (int i = 0; i < x.ndim; i++) lines *= i == last ? 1 : x.shape[i];
  bool negated[PLAIT_MAX_DIMS] = {};
  for (int i = 0; i < count - 1; i++) negated[dims[i]] = true;
  parallel_ranges(c, lines, kSerial / n + 1, [&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; line++) {
      int64_t rest = line, source = 0, target = 0;
      for (int i = x.ndim - 1; i >= 0; i--) {
        if (i == last) continue;
        const int64_t k = rest % x.shape[i];
        source += (negated[i] && k ? x.shape[i] - k : k) * x.strides[i];
        target += k * x.strides[i];
        rest /= x.shape[i];
      }
      const T *from = x.data + 2 * source;
      T *to = x.data + 2 * target;
      const int64_t step = 2 * x.strides[last];
      for (int64_t k = n / 2 + 1; k < n; k++) {
        to[k * step] = from[(n - k) * step];
        to[k * step + 1] = -from[(n - k) * step + 1];
      }
    }
  });
}

// What a result is multiplied with.
double scale_of(const plait_call *c, int at, double elements, bool forward) {
  if (text_is(c, at, "ortho")) return 1 / __builtin_sqrt(elements);
  return text_is(c, at, "forward") == forward ? 1 / elements : 1;
}

struct Dims {
  const int64_t *at;
  int count;
  explicit Dims(const plait_call *c) : at(c->in[1].u.is), count(int(c->in[1].n)) {}
  int64_t last() const { return at[count - 1]; }
  double elements(const DLTensor *t) const {
    double n = 1;
    for (int i = 0; i < count; i++) n *= double(t->shape[at[i]]);
    return n;
  }
};

template <class T>
plait_status c2c_of(plait_call *c) {
  const DLTensor *self = tensor(c, 0), *out = result(c);
  const Dims dims(c);
  const bool forward = integer(c, 3) != 0;
  const View<T> from(data<T>(self), 2, self, nullptr), to(data<T>(out), 2, out, nullptr);
  T scale = T(scale_of(c, 2, dims.elements(self), forward));
  for (int i = dims.count - 1; i >= 0; i--) {
    const View<T> &source = i == dims.count - 1 ? from : to;
    const int dim = int(dims.at[i]);
    PLAIT_TRY(transform<T>(
        c, {ComplexToComplex, {source, dim}, {to, dim}, to.shape[dim], !forward, false, scale}));
    scale = 1;
  }
  return PLAIT_OK;
}

template <class T>
plait_status r2c_of(plait_call *c) {
  const DLTensor *self = tensor(c, 0), *out = result(c);
  const Dims dims(c);
  const int last = int(dims.last());
  const int64_t n = self->shape[last];
  const bool mirrored = !integer(c, 3), at_once = mirrored && dims.count == 1;
  const View<T> from(data<T>(self), 1, self, nullptr), to(data<T>(out), 2, out, nullptr);
  View<T> half = to;
  half.shape[last] = n / 2 + 1;
  const T scale = T(scale_of(c, 2, dims.elements(self), true));
  PLAIT_TRY(transform<T>(
      c, {RealToComplex, {from, last}, {at_once ? to : half, last}, n, false, at_once, scale}));
  for (int i = dims.count - 2; i >= 0; i--) {
    const int dim = int(dims.at[i]);
    PLAIT_TRY(transform<T>(
        c, {ComplexToComplex, {half, dim}, {half, dim}, to.shape[dim], false, false, T(1)}));
  }
  if (mirrored && !at_once) mirror(c, to, dims.at, dims.count);
  return PLAIT_OK;
}

template <class T>
plait_status c2r_of(plait_call *c) {
  const DLTensor *self = tensor(c, 0), *out = result(c);
  const Dims dims(c);
  const int last = int(dims.last());
  View<T> from(data<T>(self), 2, self, nullptr);
  const View<T> to(data<T>(out), 1, out, nullptr);
  Workspace space;
  T scale = T(scale_of(c, 2, dims.elements(out), false));
  if (dims.count > 1) {
    PLAIT_TRY(space.take(c, uint64_t(2 * numel(self)) * sizeof(T)));
    int64_t strides[PLAIT_MAX_DIMS], step = 1;
    for (int i = self->ndim - 1; i >= 0; i--) {
      strides[i] = step;
      step *= self->shape[i];
    }
    const View<T> between(space.as<T>(), 2, self, strides);
    for (int i = 0; i < dims.count - 1; i++) {
      const int dim = int(dims.at[i]);
      PLAIT_TRY(transform<T>(
          c, {ComplexToComplex, {from, dim}, {between, dim}, from.shape[dim], true, false, scale}));
      from = between;
      scale = 1;
    }
  }
  return transform<T>(
      c, {ComplexToReal, {from, last}, {to, last}, out->shape[last], true, false, scale});
}

// fft_c2c(self, dim, norm, forward)
plait_status c2c(plait_call *c) {
  if (numel(result(c)) == 0) return PLAIT_OK;
  PLAIT_COMPLEX(kind(tensor(c, 0)->dtype), return c2c_of<scalar::math::RealOf<T>::type>(c))
  return PLAIT_OK;
}
// fft_r2c(self, dim, norm, onesided)
plait_status r2c(plait_call *c) {
  if (numel(result(c)) == 0) return PLAIT_OK;
  PLAIT_FLOATING(kind(tensor(c, 0)->dtype), return r2c_of<T>(c))
  return PLAIT_OK;
}
// fft_c2r(self, dim, norm, last)
plait_status c2r(plait_call *c) {
  if (numel(result(c)) == 0) return PLAIT_OK;
  PLAIT_COMPLEX(kind(tensor(c, 0)->dtype), return c2r_of<scalar::math::RealOf<T>::type>(c))
  return PLAIT_OK;
}
PLAIT_KERNEL("fft_c2c", c2c);
PLAIT_KERNEL("fft_r2c", r2c);
PLAIT_KERNEL("fft_c2r", c2r);

}  // namespace
}  // namespace plait::core::fft
