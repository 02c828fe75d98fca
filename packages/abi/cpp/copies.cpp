// Copies between devices. Strides and dtypes are dealt with on one device; what goes across is a
// run of bytes.
#include <cstdlib>

#include <plait/layer.hpp>

#include "devices.hpp"
#include "frame.hpp"
#include "uses.hpp"

namespace plait::abi {
namespace {

// The only result of an operator below all layers, or nothing after an error.
template <class... A>
plait_status one_of(const plait_op *op, plait_thread *thread, Tensor *out, const A &...args) {
  plait_value in[] = {value(args)...}, result[PLAIT_MAX_RESULTS];
  const plait_status s = base_call(op, thread, in, sizeof...(args), result);
  if (s >= 0) *out = Tensor::steal(result[0].u.t);
  return s;
}

// Whether the elements of both lie in the same order, one beside the other.
bool same_order(const plait_tensor *a, const plait_tensor *b) {
  if (a->dl.ndim != b->dl.ndim || !same(a->dl.dtype, b->dl.dtype)) return false;
  for (int32_t i = 0; i < a->dl.ndim; i++)
    if (a->dl.shape[i] != b->dl.shape[i]) return false;
  if (is_contiguous(a) && is_contiguous(b)) return true;
  int64_t last = 0;
  for (int32_t i = 0; i < a->dl.ndim; i++) {
    if (a->dl.strides[i] < 0 || (a->dl.shape[i] > 1 && a->dl.strides[i] != b->dl.strides[i]))
      return false;
    last += (a->dl.shape[i] - 1) * a->dl.strides[i];
  }
  return last == numel(a) - 1;
}

// Host memory that a copy need not wait for.
bool is_pinned(const plait_tensor *t) { return t->storage->flags & PLAIT_STORAGE_PINNED; }

// Copies between the host and a device, or between two of one type.
plait_status copy_bytes(plait_thread *thread, plait_tensor *to, plait_tensor *from, bool async) {
  const DLDevice there = to->dl.device, here = from->dl.device;
  const bool on_device = is_accelerator(here);
  const DLDevice d = on_device ? here : there;
  for (const DLDevice each : {here, there}) {
    if (!is_accelerator(each)) continue;
    if (!device_table(each)) return no_device(thread, each);
    if (is_gone(each)) return gone(thread, each);
    // what the source is known to have failed at is not carried on
    if (const plait_status s =
            late_error(thread, each, Waits::stream, current_stream(thread, each));
        s < 0)
      return s;
  }
  const plait_device *table = device_table(d);
  const bool between = on_device && is_accelerator(there) && !same(here, there);
  plait_stream *stream = current_stream(thread, d);
  plait_stream *behind = between ? current_stream(thread, there) : stream;
  if (between)  // what still works with the target comes first
    if (const plait_status s = wait_between(thread, there, behind, d, stream); s < 0) return s;
  plait_tensor *host = on_device ? (is_accelerator(there) ? nullptr : to) : from;
  async = async && host && is_pinned(host) && table->event_new;
  record_use(from->storage, stream);
  record_use(to->storage, behind);  // which waits for the copy
  thread->launch = launch(thread, op_copy, d, stream);
  const auto copy = [&] {
    if (on_device && host && !async)  // nothing writes to the host's memory if the wait is ended
      if (const plait_status s = until_done(thread, table, d, stream); s < 0) return s;
    return table->copy(table->ctx, thread, to->dl.data, there, from->dl.data, here,
                       uint64_t(numel(from) * itemsize(from->dl.dtype)), stream,
                       async ? PLAIT_COPY_ASYNC : 0);
  };
  plait_status s = call_device(thread, d, "copy", [&] { return unlocked(copy); });
  if (s >= 0 && between) s = wait_between(thread, d, stream, there, behind);
  if (s >= 0 && async) s = keep_until_done(thread, d, stream, host->storage);
  let_go(thread, d);
  // the host has waited for earlier work, which may have failed
  if (s >= 0 && on_device && host && !async) s = late_error(thread, d, Waits::stream, stream);
  return s;
}

// `copy_bytes`, also between two types of device: through the host.
plait_status move_bytes(plait_thread *thread, plait_tensor *to, plait_tensor *from, bool async) {
  const DLDevice there = to->dl.device, here = from->dl.device;
  const bool direct =
      !is_accelerator(here) || !is_accelerator(there) || here.device_type == there.device_type;
  if (direct) return copy_bytes(thread, to, from, async);
  Tensor host;
  plait_status s = tensor_new(thread, from->dl.dtype, from->dl.ndim, from->dl.shape,
                              from->dl.strides, {kDLCPU, 0}, host.out());
  if (s >= 0) s = copy_bytes(thread, host.get(), from, false);
  return s < 0 ? s : copy_bytes(thread, to, host.get(), false);
}

// Whether a device has a kernel for copy_, which deals with strides. With the fallback to the CPU
// it may have none, or one that declined.
bool has_copy(const plait_thread *thread, DLDevice d) {
  if (!is_accelerator(d)) return true;
  return backend_entry(op_copy, d.device_type) && !static_cast<const Thread *>(thread)->host_copies;
}

// A tensor with strides on a device that has no kernel for copy_: all bytes between its first and
// its last, and the same on the CPU.
struct Span {
  Tensor there, here;  // of one dimension
  Tensor tensor;       // with the strides, on `here`

  plait_status fetch(plait_thread *thread, plait_tensor *t) {
    int64_t low = 0, high = 0;
    for (int32_t i = 0; i < t->dl.ndim; i++) {
      const int64_t reach = (t->dl.shape[i] - 1) * t->dl.strides[i];
      (reach < 0 ? low : high) += reach;
    }
    const int64_t n = high - low + 1, before = low * itemsize(t->dl.dtype);
    plait_status s = tensor_on(thread, t->storage, static_cast<char *>(t->dl.data) + before,
                               t->dl.dtype, 1, &n, nullptr, there.out());
    if (s >= 0) s = tensor_new(thread, t->dl.dtype, 1, &n, nullptr, {kDLCPU, 0}, here.out());
    if (s >= 0) s = move_bytes(thread, here.get(), there.get(), false);
    if (s < 0) return s;
    return tensor_on(thread, here.get()->storage, here.data<char>() - before, t->dl.dtype,
                     t->dl.ndim, t->dl.shape, t->dl.strides, tensor.out());
  }
};

plait_status across(plait_thread *, plait_tensor *to, plait_tensor *from, bool async);

plait_status copy(plait_thread *thread, plait_tensor *to, plait_tensor *from) {
  if (!same(to->dl.device, from->dl.device)) return across(thread, to, from, false);
  Tensor ignored;
  return one_of(op_copy, thread, &ignored, to, from);
}

plait_status across(plait_thread *thread, plait_tensor *to, plait_tensor *from, bool async) {
  if (numel(to) == 0) return PLAIT_OK;
  Span span;
  if (!has_copy(thread, from->dl.device) && !same_order(to, from)) {
    const plait_status s = span.fetch(thread, from);
    return s < 0 ? s : copy(thread, to, span.tensor.get());
  }
  if (!has_copy(thread, to->dl.device) && !same_order(to, from)) {
    plait_status s = span.fetch(thread, to);
    if (s >= 0) s = copy(thread, span.tensor.get(), from);
    return s < 0 ? s : move_bytes(thread, span.there.get(), span.here.get(), false);
  }
  Tensor source = Tensor::share(from);
  plait_status s = PLAIT_OK;
  const DLDataType dtype = to->dl.dtype;
  if (!same(dtype, from->dl.dtype) && itemsize(dtype) < itemsize(from->dl.dtype))
    s = one_of(op_cast, thread, &source, from, dtype);
  if (s >= 0 && same_order(to, source.get())) return move_bytes(thread, to, source.get(), async);
  if (s >= 0 && !is_contiguous(source.get())) s = one_of(op_dense, thread, &source, source.get());
  if (s >= 0 && same_order(to, source.get())) return move_bytes(thread, to, source.get(), async);
  // what is left, other strides, a wider dtype or a larger shape, is for the target's device
  Tensor arrived, ignored;
  if (s >= 0)
    s = tensor_new(thread, source.dtype(), source.ndim(), source.shape(), nullptr, to->dl.device,
                   arrived.out());
  if (s >= 0) s = move_bytes(thread, arrived.get(), source.get(), async);
  return s < 0 ? s : one_of(op_copy, thread, &ignored, to, arrived.get());
}

}  // namespace

plait_status copy_across(Frame *f) {
  plait_tensor *to = f->in[0].u.t, *from = f->in[1].u.t;
  for (const plait_tensor *t : {to, from})
    if (t->dl.device.device_type == PLAIT_META)
      return fail(f, PLAIT_NOT_IMPLEMENTED,
                  "`src` is on the device meta, which has no values to copy to %s",
                  device_text(to->dl.device).c_str());
  return across(f->thread, to, from, f->n_in > 2 && f->in[2].u.i);
}

// A layer may hold calls back that write to the storage. It makes them before a call that it cannot
// hold back: a copy of no elements to memory of others.
plait_status settle(plait_thread *thread, const plait_tensor *t) {
  if (!(__atomic_load_n(&t->storage->flags, __ATOMIC_RELAXED) & storage_waits)) return PLAIT_OK;
  static char elsewhere[64];
  const int64_t none_of[] = {0};
  plait_storage *storage = nullptr;
  plait_status s =
      storage_wrap(thread, elsewhere, sizeof elsewhere, {kDLCPU, 0}, 0, nullptr, nullptr, &storage);
  const auto owned = Ref<plait_storage>::steal(storage);
  Tensor to, from;
  const auto nothing_of = [&](plait_storage *of, Tensor *empty) {
    if (s >= 0)
      s = tensor_on(thread, of, of->data, dtype::uint8, 1, none_of, nullptr, empty->out());
  };
  nothing_of(storage, &to);
  nothing_of(t->storage, &from);
  if (s < 0) return s;
  from.get()->layers |= passive_layers();  // also those that this thread does not see
  return border(thread, "host_copy", [&] {
    const plait_value in[] = {value(to), value(from)};
    plait_value out[PLAIT_MAX_RESULTS];
    plait::call(thread, op_copy, in, 2, out);
    release_value(out);
    return PLAIT_OK;
  });
}

plait_status host_copy(plait_thread *thread, plait_tensor *t, plait_tensor **out) {
  *out = nullptr;
  if (const plait_status s = settle(thread, t); s < 0) return s;
  if (__builtin_expect(has_no_elements(t), 0))
    return raise(thread, PLAIT_NOT_IMPLEMENTED, nullptr,
                 "values are required, and this tensor stands for the tensors of all samples: "
                 "vmap cannot compute what depends on the values of each sample");
  if (t->dl.device.device_type == kDLCPU) {
    // a handle of its own has the bytes even if another thread replaces those of the tensor
    if (has_free_threads()) return tensor_alias(thread, t, out);
    plait_retain(t);
    *out = t;
    return PLAIT_OK;
  }
  if (t->dl.device.device_type == PLAIT_META)
    return raise(thread, PLAIT_NOT_IMPLEMENTED, nullptr,
                 "values are required, which a tensor on the device meta does not have");
  Tensor result;
  plait_status s =
      tensor_new(thread, t->dl.dtype, t->dl.ndim, t->dl.shape, nullptr, {kDLCPU, 0}, result.out());
  if (s >= 0) s = across(thread, result.get(), t, false);
  if (s < 0) return s;
  result.get()->flags |= t->flags & PLAIT_TENSOR_WRAPPED_NUMBER;
  *out = result.release();
  return PLAIT_OK;
}

}  // namespace plait::abi
