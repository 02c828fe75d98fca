// The fallback to the CPU: what a device has no kernel for runs on copies, where the user allows
// it. It is counted by operator, since a copy in each step is what makes a program slow.
#include <algorithm>

#include "devices.hpp"
#include "frame.hpp"

namespace plait::abi {
namespace {

std::atomic<bool> allowed[PLAIT_MAX_DEVICE_TYPES];

ForkMutex counts_mutex;
struct Count {
  const plait_op *op;
  uint32_t device_type;
  uint64_t calls;
};
auto &counts = *new std::vector<Count>;  // never destroyed, as the tables of operators

void count(const plait_op *op, uint32_t device_type) {
  const std::lock_guard<ForkMutex> lock(counts_mutex);
  for (Count &each : counts)
    if (each.op == op && each.device_type == device_type) {
      each.calls++;
      return;
    }
  counts.push_back({op, device_type, 1});
}

// A call's inputs on the CPU.
class HostInputs {
 public:
  plait_status make(const plait_call *c) {
    for (uint16_t i = 0; i < c->n_in; i++) {
      in_[i] = c->in[i];
      if (in_[i].tag == PLAIT_DEVICE) in_[i] = value(DLDevice{kDLCPU, 0});
      if (in_[i].tag != PLAIT_TENSOR && in_[i].tag != PLAIT_TENSORS) continue;
      if (const plait_status s = copy(c->thread, i); s < 0) return s;
      owned_ |= uint64_t(1) << i;
    }
    return PLAIT_OK;
  }
  ~HostInputs() {
    for (uint16_t i = 0; i < PLAIT_MAX_ARGS; i++)
      if (owned_ >> i & 1) release_value(in_ + i);
  }
  plait_value *values() { return in_; }

 private:
  plait_status copy(plait_thread *thread, uint16_t i) {
    plait_tensor *made = nullptr;
    if (in_[i].tag == PLAIT_TENSOR) {
      const plait_status s = host_copy(thread, in_[i].u.t, &made);
      if (s >= 0) in_[i] = value(made);
      return s;
    }
    std::vector<Tensor> list;
    std::vector<plait_tensor *> bare;
    for (uint32_t k = 0; k < in_[i].n; k++) {
      plait_tensor *t = in_[i].u.ts[k];
      if (t)
        if (const plait_status s = host_copy(thread, t, &made); s < 0) return s;
      list.push_back(Tensor::steal(t ? made : nullptr));
      bare.push_back(list.back().get());
    }
    return tensors_value(thread, bare.data(), in_[i].n, in_ + i);
  }
  plait_value in_[PLAIT_MAX_ARGS];
  uint64_t owned_ = 0;
};

// What a device declined to copy cannot be brought to the CPU by the device's own copies.
class HostCopies {
 public:
  explicit HostCopies(const plait_call *c)
      : thread_(static_cast<Thread *>(c->thread)), before_(thread_->host_copies) {
    thread_->host_copies |= c->op == op_copy || c->op == op_dense;
  }
  ~HostCopies() { thread_->host_copies = before_; }
  HostCopies(const HostCopies &) = delete;
  HostCopies &operator=(const HostCopies &) = delete;

 private:
  Thread *thread_;
  bool before_;
};

plait_status write(plait_thread *thread, plait_tensor *to, plait_tensor *from) {
  if (to == from) return PLAIT_OK;
  plait_value in[] = {value(to), value(from)}, out[PLAIT_MAX_RESULTS];
  const plait_status s = base_call(op_copy, thread, in, 2, out);
  if (s >= 0) release_value(out);
  return s;
}

plait_status back_on_device(plait_thread *thread, DLDevice d, plait_tensor *from,
                            plait_tensor **out) {
  const plait_status s =
      tensor_new(thread, from->dl.dtype, from->dl.ndim, from->dl.shape, nullptr, d, out);
  return s < 0 ? s : write(thread, *out, from);
}

// Result `i`, which the CPU has made, where the caller expects it.
plait_status give_back(plait_call *c, uint16_t i, const plait_value &result) {
  plait_thread *thread = c->thread;
  if (c->form != PLAIT_FUNCTION) {
    plait_tensor *target = c->out[i].u.t;
    const DLTensor &t = result.u.t->dl;
    const plait_status s = accept(c, target, t.dtype, t.ndim, t.shape);
    return s < 0 ? s : write(thread, target, result.u.t);
  }
  const int32_t alias = plait_result_at(c->op, i)->alias_arg;
  if (alias >= 0 && c->in[alias].tag == PLAIT_TENSOR) {
    plait_retain(c->in[alias].u.t);
    c->out[i] = c->in[alias];
    return PLAIT_OK;
  }
  if (result.tag == PLAIT_TENSOR) {
    plait_tensor *t = nullptr;
    const plait_status s = back_on_device(thread, c->device, result.u.t, &t);
    c->out[i] = value(t);
    return s;
  }
  if (result.tag != PLAIT_TENSORS) {
    c->out[i] = result;
    return PLAIT_OK;
  }
  std::vector<Tensor> list(result.n);
  std::vector<plait_tensor *> bare;
  for (uint32_t k = 0; k < result.n; k++) {
    const plait_status s = back_on_device(thread, c->device, result.u.ts[k], list[k].out());
    if (s < 0) return s;
    bare.push_back(list[k].get());
  }
  return tensors_value(thread, bare.data(), result.n, c->out + i);
}

}  // namespace

plait_status set_fallback(plait_thread *thread, DLDeviceType type, int32_t on) {
  if (!is_accelerator({type, 0}))
    return raise(thread, PLAIT_VALUE_ERROR, "set_fallback",
                 "the type of a device other than the CPU is required, got %d", int(type));
  allowed[type] = on != 0;
  return PLAIT_OK;
}

bool falls_back(DLDevice d) { return is_accelerator(d) && allowed[d.device_type]; }

plait_status run_on_cpu(plait_call *c) {
  return border(c->thread, c->op->name, [&]() -> plait_status {
    const HostCopies copies(c);
    HostInputs inputs;
    if (const plait_status s = inputs.make(c); s < 0) return s;
    const DefaultDevice host(c->thread, {kDLCPU, 0});  // of calls that make tensors of nothing
    plait_value out[PLAIT_MAX_RESULTS];
    plait_status s = base_call(c->op, c->thread, inputs.values(), c->n_in, out);
    if (s < 0) return s;
    count(c->op, uint32_t(c->device.device_type));
    for (uint16_t i = 0; s >= 0 && i < c->op->n_args; i++)
      if (plait_arg_at(c->op, i)->flags & PLAIT_ARG_WRITES && c->in[i].tag == PLAIT_TENSOR) {
        s = write(c->thread, c->in[i].u.t, inputs.values()[i].u.t);
        wrote(c->in[i].u.t);
      }
    for (uint16_t i = 0; s >= 0 && i < c->n_out; i++) {
      s = give_back(c, i, out[i]);
      if (s >= 0 && c->form != PLAIT_FUNCTION) wrote(c->out[i].u.t);
    }
    if (s < 0 && c->form == PLAIT_FUNCTION) release_all(c->out, c->n_out);
    for (uint16_t i = 0; i < c->n_out; i++)
      if (out[i].tag == PLAIT_TENSOR || out[i].tag == PLAIT_TENSORS) release_value(out + i);
    return s;
  });
}

void report_fallbacks(std::vector<plait_record> &list) {
  const std::lock_guard<ForkMutex> lock(counts_mutex);
  for (const Count &each : counts)
    list.push_back({"fallback", each.op->name, "plait_abi", "", 1, each.device_type, each.calls});
}

}  // namespace plait::abi
