// Casts the float16 and bfloat16 arguments to float32, calls the operator's own kernel on them, and
// rounds the results back: a computation accumulates in float32, and each result is rounded once.
#include "kernel/half_fallback.h"

#include "kernel/copy.h"
#include "kernel/elementwise.h"
#include "kernel/half.h"

namespace plait::core {
namespace {

constexpr DLDataType kFloat32 = {kDLFloat, 32, 1};
bool is_half(const DLTensor &t) { return core::is_half(kind(t.dtype)); }
bool is_half(const plait_value &v) {
  if (v.tag == PLAIT_DTYPE) return core::is_half(kind(v.u.dtype));
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
    PLAIT_TRY(runtime()->tensor_new(call_.thread, kFloat32, from.ndim, from.shape, nullptr,
                                    from.device, &fresh));
    made->u.t = fresh;
    const plait_status s = read ? copy(&call_, &fresh->dl, &from) : PLAIT_OK;
    if (s != PLAIT_OK) plait_release(fresh);
    return s;
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

}  // namespace

plait_status half_fallback(plait_call *c) {
  bool any = false;
  for (int i = 0; i < c->n_in; i++) any |= c->in[i].tag != PLAIT_DTYPE && is_half(c->in[i]);
  for (int i = 0; i < c->n_out; i++) any |= is_half(c->out[i]);
  if (!any) return PLAIT_DECLINE;
  Float32Call w(c);
  PLAIT_TRY(w.widen());
  PLAIT_TRY(w.run());
  return w.narrow();
}

}  // namespace plait::core
