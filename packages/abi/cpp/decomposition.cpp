// Decompositions: an operator run as calls of others, and what a kernel for it needs to know of its
// results.
#include "frame.hpp"

namespace plait::abi {
namespace {

// Layers keep the inputs of operators, and the in-place form is about to overwrite them. So a
// decomposition that layers see reads copies of inputs that share memory with the target.
plait_status read_copies(const plait_call *c, plait_value *in, std::vector<Tensor> *copies) {
  return border(c->thread, c->op->name, [&]() -> plait_status {
    const plait_storage *target = c->out[0].u.t->storage;
    for (uint16_t i = 0; i < c->n_in; i++) {
      in[i] = c->in[i];
      if (in[i].tag != PLAIT_TENSOR || in[i].u.t->storage != target) continue;
      plait_value copy[PLAIT_MAX_RESULTS];
      plait::call(c->thread, op_clone, in + i, 1, copy);
      copies->push_back(Tensor::steal(copy[0].u.t));
      in[i] = copy[0];
    }
    return PLAIT_OK;
  });
}

// A tensor of the same shape, dtype and strides that has no bytes.
plait_status meta_like(plait_thread *thread, const plait_tensor *t, plait_tensor **out) {
  plait_storage *none = nullptr;
  plait_status s = storage_new(thread, {PLAIT_META, 0}, 0, &none);
  if (s < 0) return s;
  s = tensor_on(thread, none, nullptr, t->dl.dtype, t->dl.ndim, t->dl.shape, t->dl.strides, out);
  plait_release(none);
  if (s >= 0) (*out)->flags |= t->flags & PLAIT_TENSOR_WRAPPED_NUMBER;
  return s;
}

// The inputs of a call without their bytes.
class MetaInputs {
 public:
  plait_status make(const plait_call *c) {
    for (uint16_t i = 0; i < c->n_in; i++) in_[i] = c->in[i];
    n_ = c->n_in;
    for (uint16_t i = 0; i < c->n_in; i++) {
      plait_status s = PLAIT_OK;
      if (in_[i].tag == PLAIT_DEVICE) {
        in_[i] = value(DLDevice{PLAIT_META, 0});
      } else if (in_[i].tag == PLAIT_TENSOR) {
        plait_tensor *made = nullptr;
        s = meta_like(c->thread, in_[i].u.t, &made);
        if (s >= 0) own(i, value(made));
      } else if (in_[i].tag == PLAIT_TENSORS) {
        s = make_list(c->thread, i);
      }
      if (s < 0) return s;
    }
    return PLAIT_OK;
  }
  ~MetaInputs() {
    for (uint16_t i = 0; i < n_; i++)
      if (owned_ >> i & 1) release_value(in_ + i);
  }
  plait_value *values() { return in_; }

 private:
  void own(uint16_t i, plait_value v) {
    in_[i] = v;
    owned_ |= uint64_t(1) << i;
  }
  plait_status make_list(plait_thread *thread, uint16_t i) {
    plait_value list;
    if (const plait_status s = tensors_value(thread, in_[i].u.ts, in_[i].n, &list); s < 0) return s;
    own(i, list);
    for (uint32_t k = 0; k < list.n; k++) {
      plait_tensor **slot = const_cast<plait_tensor **>(list.u.ts) + k, *made = nullptr;
      if (!*slot) continue;
      if (const plait_status s = meta_like(thread, *slot, &made); s < 0) return s;
      plait_release(*slot);
      *slot = made;
    }
    return PLAIT_OK;
  }
  plait_value in_[PLAIT_MAX_ARGS];
  uint16_t n_ = 0;
  uint64_t owned_ = 0;
};

bool is_dense(const plait_tensor *t) {  // each element of its span belongs to one index
  int64_t last = 0;
  for (int32_t i = 0; i < t->dl.ndim; i++) {
    if (t->dl.strides[i] < 0) return false;
    last += (t->dl.shape[i] - 1) * t->dl.strides[i];
  }
  return numel(t) > 0 && last == numel(t) - 1;
}

plait_status result_like(Frame *f, uint16_t i, const plait_value &result) {
  if (result.tag == PLAIT_TENSOR) {
    const DLTensor &t = result.u.t->dl;
    return result_strided(f, i, t.dtype, t.ndim, t.shape,
                          is_dense(result.u.t) ? t.strides : nullptr);
  }
  for (uint32_t k = 0; result.tag == PLAIT_TENSORS && k < result.n; k++) {
    const DLTensor &t = result.u.ts[k]->dl;
    plait_tensor *one = nullptr;
    const plait_status s =
        tensor_new(f->thread, t.dtype, t.ndim, t.shape, nullptr, f->device, &one);
    if (s < 0) return s;
    f->list.push_back(one);
  }
  return PLAIT_OK;
}

}  // namespace

plait_status decomposed(plait_call *c, Layers layers, bool kept) {
  plait_value in[PLAIT_MAX_ARGS], out[PLAIT_MAX_RESULTS];
  std::vector<Tensor> copies;
  plait_call inner = known_part(c);
  if (kept && c->form == PLAIT_INPLACE) {
    if (const plait_status s = read_copies(c, in, &copies); s < 0) return s;
    inner.in = in;
  }
  inner.size = sizeof inner;
  inner.out = out;
  for (uint16_t i = 0; i < c->n_out; i++) out[i] = none();
  inner.form = PLAIT_FUNCTION;
  inner.reusable = 0;
  const uint64_t excluded = c->thread->excluded;
  const bool unseen =
      layers == Layers::off || (!kept && !(c->thread->included & ~excluded & ~passive_layers()));
  if (c->form != PLAIT_FUNCTION && c->n_out == 1 && unseen) {
    out[0].n = c->form;  // the last call may write into the target
    out[0].u.t = c->out[0].u.t;
  }
  if (layers == Layers::off) c->thread->excluded = ~uint64_t(0);
  // errors that a device finds later name what was called
  auto *thread = static_cast<Thread *>(c->thread);
  const plait_op *outer = thread->composite;
  const DLDevice outer_device = thread->decomposing;
  thread->decomposing = c->device;
  if (!outer && !(c->op->flags & PLAIT_OP_INTERNAL)) thread->composite = c->op;
  const plait_error *before = c->thread->error;
  plait_status s = judged(c, c->op->def->decompose(&inner), before);
  if (s == PLAIT_OK && c->form != PLAIT_FUNCTION) {
    for (uint16_t i = 0; i < c->n_out && s >= 0; i++) {
      plait_tensor *target = c->out[i].u.t;
      if (out[i].tag != PLAIT_TENSOR) {
        s = fail(c, PLAIT_ERROR, "its decomposition gave no result %u", i);
        break;
      }
      if (out[i].u.t == target) continue;
      const DLTensor &result = out[i].u.t->dl;
      s = accept(c, target, result.dtype, result.ndim, result.shape);
      plait_value in[] = {c->out[i], out[i]}, ignored[PLAIT_MAX_RESULTS];
      if (s >= 0)
        s = border(c->thread, c->op->name, [&]() -> plait_status {
          plait::call(c->thread, op_copy, in, 2, ignored);
          release_value(ignored);
          return PLAIT_OK;
        });
    }
    release_all(out, c->n_out);
  } else if (s == PLAIT_OK) {
    for (uint16_t i = 0; i < c->n_out; i++) c->out[i] = out[i];
  } else {
    release_all(out, c->n_out);
  }
  c->thread->excluded = excluded;
  thread->composite = outer;
  thread->decomposing = outer_device;
  if (s < 0) name_caller(c);
  return s == PLAIT_DECLINE ? no_kernel(c) : s;
}

plait_status shape_by_decomposition(Frame *f) {
  MetaInputs inputs;
  if (const plait_status s = inputs.make(f); s < 0) return s;
  plait_value out[PLAIT_MAX_RESULTS];
  plait_call inner = *f;
  inner.size = sizeof inner;
  inner.in = inputs.values();
  inner.out = out;
  inner.device = {PLAIT_META, 0};
  inner.form = PLAIT_FUNCTION;
  for (uint16_t i = 0; i < f->n_out; i++) out[i] = none();
  const DefaultDevice meta(f->thread, inner.device);
  plait_status s = decomposed(&inner, Layers::off);
  if (s < 0) name_caller(f);  // by the form that was called
  if (s == PLAIT_NOT_IMPLEMENTED) {
    clear(f->thread);
    s = PLAIT_DECLINE;
  }
  for (uint16_t i = 0; s == PLAIT_OK && i < f->n_out; i++) s = result_like(f, i, out[i]);
  release_all(out, f->n_out);
  return s;
}

plait_status decompose(plait_call *c) {
  return c->op->def->decompose ? decomposed(c, Layers::on, true) : no_kernel(c);
}

}  // namespace plait::abi
