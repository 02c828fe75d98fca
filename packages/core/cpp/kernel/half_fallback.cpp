// Casts the float16 and bfloat16 arguments to float32, calls the operator's own kernel on them, and
// rounds the results back: a computation accumulates in float32, and each result is rounded once.
// float8 is cast for the operators that tell what elements are and compute none.
#include "kernel/half_fallback.h"

#include "kernel/copy.h"
#include "kernel/elementwise.h"
#include "kernel/half.h"
#include "kernel/integers.h"
#include "kernel/slices.h"
#include "reduction/reduce.h"

namespace plait::core {
namespace {

constexpr DLDataType kFloat32 = {kDLFloat, 32, 1};
bool is_widened(Kind k) { return core::is_half(k) || is_float8(k); }
bool is_half(const DLTensor &t) { return is_widened(kind(t.dtype)); }
bool is_half(const plait_value &v) {
  if (v.tag == PLAIT_DTYPE) return is_widened(kind(v.u.dtype));
  if (v.tag == PLAIT_TENSOR) return is_half(v.u.t->dl);
  bool any = false;
  for (uint32_t k = 0; v.tag == PLAIT_TENSORS && k < v.n; k++)
    any |= v.u.ts[k] && is_half(v.u.ts[k]->dl);
  return any;
}

// float32 to the nearest half that is not larger, so that a uniform random number stays below its
// bound.
template <bool bfloat>
void floor_loop(char *out, char *const *in, int64_t n, const void *) {
  uint16_t *to = reinterpret_cast<uint16_t *>(out);
  const float *from = reinterpret_cast<const float *>(in[0]);
  for (int64_t i = 0; i < n; i++) {
    const uint16_t near =
        bfloat ? plait_bfloat16_of_float(from[i]) : plait_float16_of_float(from[i]);
    const bool above =
        (bfloat ? plait_bfloat16_to_float(near) : plait_float16_to_float(near)) > from[i];
    const bool negative = near >> 15;
    to[i] = uint16_t(!above ? near : negative ? near + 1 : near - 1);
  }
}
void copy_down(const plait_call *c, const DLTensor *to, const DLTensor *from) {
  Plan plan;
  plan.add(to, 2);
  plan.add(from, 4);
  plan.finish();
  const Loop loop = kind(to->dtype) == BF16 ? floor_loop<true> : floor_loop<false>;
  run_elementwise(c, plan, Inner{loop, nullptr, {2, 4}});
}

// A call with its half arguments and results replaced by float32.
class Float32Call {
 public:
  explicit Float32Call(plait_call *c) : outer_(c), call_(*c) {
    call_.size = sizeof call_;  // says that this is not the runtime's Frame
    call_.in = in_;
    call_.out = out_;
    for (int i = 0; i < c->n_in; i++) in_[i] = c->in[i];
    for (int i = 0; i < c->n_out; i++) out_[i] = c->out[i];
  }
  Float32Call(const Float32Call &) = delete;
  Float32Call &operator=(const Float32Call &) = delete;
  ~Float32Call() {
    for (int i = 0; i < call_.n_in; i++)
      if (made_in_ >> i & 1) runtime()->release_value(in_ + i);
    for (int i = 0; i < call_.n_out; i++)
      if (made_out_ >> i & 1) runtime()->release_value(out_ + i);
  }
  plait_status widen() {
    for (int i = 0; i < call_.n_in; i++) {
      if (!is_half(in_[i])) continue;
      if (in_[i].tag == PLAIT_DTYPE) {
        in_[i].u.dtype = kFloat32;
        continue;
      }
      plait_value made;
      PLAIT_TRY(in_[i].tag == PLAIT_TENSOR ? one(in_[i].u.t, true, &made) : list(in_[i], &made));
      in_[i] = made;
      made_in_ |= uint64_t(1) << i;
    }
    for (int i = 0; i < call_.n_out; i++) {
      if (out_[i].tag == PLAIT_TENSORS && is_half(out_[i])) return PLAIT_DECLINE;
      if (out_[i].tag != PLAIT_TENSOR || !is_half(out_[i])) continue;
      const plait_arg &result = *plait_result_at(call_.op, i);
      plait_value made;
      if ((result.flags & PLAIT_ARG_WRITES) && result.alias_arg >= 0) {
        made = in_[result.alias_arg];  // the result is the argument that is written to
        plait_retain(made.u.t);
      } else if (i == 0 && is_over_first()) {
        made = in_[0];
        plait_retain(made.u.t);
      } else {
        PLAIT_TRY(one(out_[i].u.t, false, &made));
      }
      out_[i] = made;
      made_out_ |= uint64_t(1) << i;
    }
    return PLAIT_OK;
  }
  // Runs the kernels that are registered before this one.
  plait_status run() {
    for (const plait_entry *e = call_.op->backend[kDLCPU]; e && e != outer_->self; e = e->prev) {
      call_.self = e;
      const plait_status s = e->fn(&call_);
      if (s != PLAIT_DECLINE) return s;
    }
    return PLAIT_DECLINE;
  }
  plait_status narrow() {
    for (int i = 0; i < call_.n_in; i++) {
      if (!(made_in_ >> i & 1) || !(plait_arg_at(call_.op, i)->flags & PLAIT_ARG_WRITES)) continue;
      const plait_value &from = in_[i], &to = outer_->in[i];
      if (to.tag == PLAIT_TENSOR && strcmp(call_.op->name, "uniform_") == 0) {
        copy_down(&call_, &to.u.t->dl, &from.u.t->dl);
      } else if (to.tag == PLAIT_TENSOR) {
        PLAIT_TRY(copy(&call_, &to.u.t->dl, &from.u.t->dl));
      }
      for (uint32_t k = 0; to.tag == PLAIT_TENSORS && k < to.n; k++)
        if (to.u.ts[k]) PLAIT_TRY(copy(&call_, &to.u.ts[k]->dl, &from.u.ts[k]->dl));
    }
    for (int i = 0; i < call_.n_out; i++) {
      const plait_arg &result = *plait_result_at(call_.op, i);
      const bool written = (result.flags & PLAIT_ARG_WRITES) && result.alias_arg >= 0;
      if ((made_out_ >> i & 1) && !written)
        PLAIT_TRY(copy(&call_, &outer_->out[i].u.t->dl, &out_[i].u.t->dl));
    }
    return PLAIT_OK;
  }
  bool any() const { return made_in_ || made_out_; }

 private:
  const plait_runtime *runtime() const { return call_.thread->runtime; }
  plait_status one(const plait_tensor *t, bool read, plait_value *made) {
    const DLTensor &from = t->dl;
    *made = plait_value{PLAIT_TENSOR, 0, {0}};
    plait_tensor *fresh = nullptr;
    // a result keeps the order in memory that the shape function gave it
    const int64_t *strides = read || is_contiguous(&from) || !fills(from) ? nullptr : from.strides;
    PLAIT_TRY(runtime()->tensor_new(call_.thread, kFloat32, from.ndim, from.shape, strides,
                                    from.device, &fresh));
    made->u.t = fresh;
    const plait_status s = read ? copy(&call_, &fresh->dl, &from) : PLAIT_OK;
    if (s != PLAIT_OK) plait_release(fresh);
    return s;
  }
  // Whether the kernel may write the first result over the widened first argument.
  bool is_over_first() const {
    for (const plait_entry *e = call_.op->backend[kDLCPU]; e && e != outer_->self; e = e->prev)
      if (!e->who || !(e->who->flags & PLAIT_PLUGIN_OVERWRITES)) return false;
    return (call_.op->flags & PLAIT_OP_OVERWRITES) && (made_in_ & 1) &&
           in_[0].tag == PLAIT_TENSOR && same_shape(in_[0].u.t->dl, out_[0].u.t->dl);
  }
  // Whether no memory lies between a tensor's elements, as it does between those of a slice.
  static bool fills(const DLTensor &t) {
    int64_t span = 1, count = 1;
    for (int d = 0; d < t.ndim; d++) {
      span += (t.shape[d] - 1) * t.strides[d];
      count *= t.shape[d];
    }
    return span == count;
  }
  static bool same_shape(const DLTensor &a, const DLTensor &b) {
    return a.ndim == b.ndim && !memcmp(a.shape, b.shape, size_t(a.ndim) * sizeof(int64_t));
  }
  plait_status list(const plait_value &v, plait_value *made) {
    Workspace space;
    PLAIT_TRY(space.take(&call_, v.n * sizeof(plait_tensor *)));
    plait_tensor **to = space.as<plait_tensor *>();
    plait_status s = PLAIT_OK;
    uint32_t n = 0;
    for (; n < v.n && s == PLAIT_OK; n++) {
      to[n] = v.u.ts[n];
      plait_value fresh{};
      if (to[n] && is_half(to[n]->dl)) {
        s = one(to[n], true, &fresh);
        to[n] = s == PLAIT_OK ? fresh.u.t : nullptr;
      } else if (to[n]) {
        plait_retain(to[n]);
      }
    }
    if (s == PLAIT_OK) s = runtime()->tensors(call_.thread, to, n, made);
    for (uint32_t i = 0; i < n; i++) plait_release(to[i]);
    return s;
  }

  plait_call *outer_;
  plait_call call_;
  plait_value in_[PLAIT_MAX_ARGS], out_[PLAIT_MAX_RESULTS];
  uint64_t made_in_ = 0, made_out_ = 0;
};

plait_status run_in_float32(plait_call *c) {
  Float32Call w(c);
  PLAIT_TRY(w.widen());
  PLAIT_TRY(w.run());
  return w.narrow();
}

// Calls on slices.

constexpr int64_t kSlice = 1 << 20;  // float32 numbers of the tensors that are cut, for one call
constexpr int64_t kPiece = 64;  // adjacent elements that are worth a copy

class Slices {
 public:
  Slices(plait_call *c, const char *text) : outer_(c), call_(*c) {
    call_.size = sizeof call_;
    call_.in = in_;
    call_.out = out_;
    for (int i = 0; i < c->n_in; i++) in_[i] = c->in[i];
    for (int i = 0; i < c->n_out; i++) out_[i] = c->out[i];
    read(text);
  }
  Slices(const Slices &) = delete;
  Slices &operator=(const Slices &) = delete;
  ~Slices() {
    for (int i = 0; i < call_.n_in; i++)
      if (in_[i].tag == PLAIT_TENSOR && in_[i].u.t != outer_->in[i].u.t) plait_release(in_[i].u.t);
    for (int i = 0; i < call_.n_out; i++) {
      if (out_[i].tag == PLAIT_TENSOR && out_[i].u.t != outer_->out[i].u.t)
        plait_release(out_[i].u.t);
      if (total_[i]) plait_release(total_[i]);
      if (view_[i]) plait_release(view_[i]);
    }
  }
  // Whether there are several slices.
  bool many() const { return step_ < size_; }
  plait_status run() {
    PLAIT_TRY(widen_whole());
    for (int64_t begin = 0; begin < size_; begin += step_) {
      const int64_t n = least(step_, size_ - begin);
      for (int i = 0; i < call_.n_in; i++)
        PLAIT_TRY(cut(outer_->in[i], arg_[i], begin, n, in_ + i));
      for (int i = 0; i < call_.n_out; i++) {
        PLAIT_TRY(cut(outer_->out[i], res_[i], begin, n, out_ + i));
        if (res_[i] >= 0) PLAIT_TRY(make_dense(i));
      }
      PLAIT_TRY(run_in_float32(&call_));
      for (int i = 0; i < call_.n_out; i++) {
        if (res_[i] == kSum) add(&total_[i]->dl, &out_[i].u.t->dl, begin == 0);
        if (!view_[i]) continue;
        PLAIT_TRY(copy(&call_, &view_[i]->dl, &out_[i].u.t->dl));
        plait_release(view_[i]);
        view_[i] = nullptr;
      }
    }
    for (int i = 0; i < call_.n_out; i++)
      if (res_[i] == kSum) PLAIT_TRY(copy(&call_, &outer_->out[i].u.t->dl, &total_[i]->dl));
    return PLAIT_OK;
  }

 private:
  enum : int { kWhole = -1, kSum = -2 };

  void read(const char *text) {
    const uint64_t excluded = excluded_dims();
    int64_t all = 0;
    for (int i = 0; i < call_.n_in; i++, text++) {
      arg_[i] = *text == '.' ? kWhole : cut_dim(*text, outer_->in[i], excluded);
      if (arg_[i] >= 0 && outer_->in[i].tag == PLAIT_TENSOR) all += numel(&outer_->in[i].u.t->dl);
    }
    text++;
    for (int i = 0; i < call_.n_out; i++, text++) {
      res_[i] = *text == '+' ? kSum : cut_dim(*text, outer_->out[i], excluded);
      if (res_[i] >= 0) all += numel(&outer_->out[i].u.t->dl);
    }
    if (!first_ || at_ < 0 || at_ >= first_->ndim || !fits()) return;
    int64_t adjacent = 1;
    for (int d = at_ + 1; d < first_->ndim; d++) adjacent *= first_->shape[d];
    size_ = first_->shape[at_];
    step_ = all <= 2 * kSlice ? size_ : kSlice / ceil_div(all, size_);
    const int64_t smallest = adjacent < 1 ? 1 : ceil_div(kPiece, adjacent);
    if (step_ < smallest) step_ = smallest;
  }
  // Bits of the dimensions of the argument `dim`, which no slice cuts.
  uint64_t excluded_dims() const {
    for (int i = 0; i < call_.n_in; i++) {
      if (strcmp(plait_arg_at(call_.op, i)->name, "dim") != 0) continue;
      return outer_->in[0].tag == PLAIT_TENSOR ? dims_mask(outer_, i, outer_->in[0].u.t->dl.ndim)
                                               : ~uint64_t(0);
    }
    return 0;
  }
  // The dimension of a value that is cut, kWhole if it has none.
  int cut_dim(char letter, const plait_value &v, uint64_t excluded) {
    if (v.tag == PLAIT_INTS) return letter - '0';
    if (v.tag != PLAIT_TENSOR) return kWhole;
    const DLTensor &t = v.u.t->dl;
    if (letter != 'd') {
      if (!first_) at_ = letter - '0';
    } else if (first_) {
      const uint64_t before = excluded & ((uint64_t(1) << (at_ < 0 ? 0 : at_)) - 1);
      return t.ndim < first_->ndim ? at_ - __builtin_popcountll(before) : at_;
    } else {
      // the first that is long enough for all slices, else the longest
      const int64_t slices = ceil_div(4 * numel(&t), kSlice);
      for (int d = 0; d < t.ndim; d++)
        if (!(excluded >> d & 1) &&
            (at_ < 0 || (t.shape[at_] < slices && t.shape[d] > t.shape[at_])))
          at_ = d;
    }
    if (!first_) first_ = &t;
    return letter == 'd' ? at_ : letter - '0';
  }
  // Whether all that is cut has the same size there.
  bool fits() const {
    for (int i = 0; i < call_.n_in; i++)
      if (!has_size(outer_->in[i], arg_[i])) return false;
    for (int i = 0; i < call_.n_out; i++)
      if (!has_size(outer_->out[i], res_[i])) return false;
    return true;
  }
  bool has_size(const plait_value &v, int dim) const {
    if (dim < 0) return true;
    const int64_t n = first_->shape[at_];
    if (v.tag == PLAIT_INTS) return uint32_t(dim) < v.n && v.u.is[dim] == n;
    return dim < v.u.t->dl.ndim && v.u.t->dl.shape[dim] == n;
  }
  // What all slices see whole is widened once; what they sum begins as a tensor of its own.
  plait_status widen_whole() {
    for (int i = 0; i < call_.n_in; i++) {
      const bool written = plait_arg_at(call_.op, i)->flags & PLAIT_ARG_WRITES;
      if (in_[i].tag != PLAIT_TENSOR || arg_[i] >= 0 || written || !is_half(in_[i])) continue;
      plait_tensor *made;
      PLAIT_TRY(fresh(in_[i].u.t->dl, &made));
      in_[i].u.t = made;
      PLAIT_TRY(copy(&call_, &made->dl, &outer_->in[i].u.t->dl));
    }
    for (int i = 0; i < call_.n_out; i++) {
      if (res_[i] != kSum) continue;
      PLAIT_TRY(fresh(outer_->out[i].u.t->dl, &total_[i]));
      plait_tensor *part;
      PLAIT_TRY(fresh(outer_->out[i].u.t->dl, &part));
      out_[i].u.t = part;
    }
    return PLAIT_OK;
  }
  plait_status fresh(const DLTensor &like, plait_tensor **made) const {
    const DLDataType dtype = is_half(like) ? kFloat32 : like.dtype;
    return runtime()->tensor_new(call_.thread, dtype, like.ndim, like.shape, nullptr, like.device,
                                 made);
  }
  plait_status cut(const plait_value &from, int dim, int64_t begin, int64_t n, plait_value *to) {
    if (dim < 0) return PLAIT_OK;
    if (from.tag == PLAIT_INTS) {
      memcpy(ints_, from.u.is, from.n * sizeof(int64_t));
      ints_[dim] = n;
      to->u.is = ints_;
      return PLAIT_OK;
    }
    const DLTensor &t = from.u.t->dl;
    int64_t shape[PLAIT_MAX_DIMS];
    for (int d = 0; d < t.ndim; d++) shape[d] = d == dim ? n : t.shape[d];
    char *data = static_cast<char *>(t.data) + begin * t.strides[dim] * size_of(kind(t.dtype));
    plait_tensor *view;
    PLAIT_TRY(runtime()->tensor_on(call_.thread, from.u.t->storage, data, t.dtype, t.ndim, shape,
                                   t.strides, &view));
    if (to->u.t != from.u.t) plait_release(to->u.t);
    to->u.t = view;
    return PLAIT_OK;
  }
  // Kernels take a fresh result to be dense: they get one, and it is copied to the slice. Halves
  // have that anyway.
  plait_status make_dense(int i) {
    plait_tensor *slice = out_[i].u.t, *made;
    if (is_half(slice->dl) || is_contiguous(&slice->dl)) return PLAIT_OK;
    PLAIT_TRY(fresh(slice->dl, &made));
    view_[i] = slice;
    out_[i].u.t = made;
    return PLAIT_OK;
  }
  // Both have one shape in C order and float32 numbers.
  void add(DLTensor *total, const DLTensor *part, bool first) const {
    float *to = data<float>(total);
    const float *from = data<float>(part);
    parallel_ranges(&call_, numel(total), kChunk, [&](int64_t begin, int64_t end) {
      if (first) memcpy(to + begin, from + begin, size_t(end - begin) * sizeof(float));
      for (int64_t i = begin; !first && i < end; i++) to[i] += from[i];
    });
  }
  const plait_runtime *runtime() const { return call_.thread->runtime; }

  plait_call *outer_;
  plait_call call_;
  plait_value in_[PLAIT_MAX_ARGS], out_[PLAIT_MAX_RESULTS];
  plait_tensor *total_[PLAIT_MAX_RESULTS] = {};
  plait_tensor *view_[PLAIT_MAX_RESULTS] = {};  // slices of results that a kernel fills elsewhere
  int arg_[PLAIT_MAX_ARGS], res_[PLAIT_MAX_RESULTS];
  int64_t ints_[PLAIT_MAX_DIMS];  // the sizes of a slice
  const DLTensor *first_ = nullptr;  // what decides how many slices there are, and its dimension
  int at_ = kWhole;
  int64_t size_ = 0, step_ = 0;
};

bool has_float8(const plait_value &v) {
  if (v.tag == PLAIT_TENSOR) return is_float8(kind(v.u.t->dl.dtype));
  for (uint32_t k = 0; v.tag == PLAIT_TENSORS && k < v.n; k++)
    if (v.u.ts[k] && is_float8(kind(v.u.ts[k]->dl.dtype))) return true;
  return false;
}
// Whether a call has float8 and its operator computes elements.
bool refuses_float8(const plait_call *c) {
  bool any = false;
  for (int i = 0; i < c->n_in; i++) any |= has_float8(c->in[i]);
  for (int i = 0; i < c->n_out; i++) any |= has_float8(c->out[i]);
  if (!any) return false;
  static const char *const tells[] = {"eq",  "ne",      "isnan", "isinf",   "isfinite",     "abs",
                                      "any", "any.dim", "all",   "all.dim", "count_nonzero"};
  for (const char *op : tells)
    if (strcmp(c->op->name, op) == 0) return false;
  return true;
}

bool is_large(const plait_call *c) {
  int64_t all = 0;
  for (int i = 0; i < c->n_in; i++)
    if (c->in[i].tag == PLAIT_TENSOR) all += numel(&c->in[i].u.t->dl);
  for (int i = 0; i < c->n_out; i++)
    if (c->out[i].tag == PLAIT_TENSOR) all += numel(&c->out[i].u.t->dl);
  return all > 2 * kSlice;
}
const char *letters_of(const char *op) {
  for (const SliceLetters *s = kSliceLetters; s->op; s++)
    if (strcmp(s->op, op) == 0) return s->letters;
  return nullptr;
}

}  // namespace

plait_status half_fallback(plait_call *c) {
  bool any = false;
  for (int i = 0; i < c->n_in; i++) any |= c->in[i].tag != PLAIT_DTYPE && is_half(c->in[i]);
  for (int i = 0; i < c->n_out; i++) any |= is_half(c->out[i]);
  if (!any || refuses_float8(c)) return PLAIT_DECLINE;
  if (const char *letters = is_large(c) ? letters_of(c->op->name) : nullptr) {
    Slices slices(c, letters);
    if (slices.many()) return slices.run();
  }
  return run_in_float32(c);
}

}  // namespace plait::core
