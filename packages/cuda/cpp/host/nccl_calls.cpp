#include "host/nccl_calls.h"

namespace plait::cuda::nccl {
namespace {

using collectives::Collective;

// Elements as NCCL counts them.
struct Elements {
  int type = kInt8, reduction = kSum;
  size_t each = 1;  // of them in one of the tensor's
};

bool reduces(const Collective &c) {
  return c.kind == PLAIT_ALL_REDUCE || c.kind == PLAIT_REDUCE || c.kind == PLAIT_REDUCE_SCATTER;
}

int type_of(DLDataType d) {
  switch (d.code) {
    case kDLInt: return d.bits == 8 ? kInt8 : d.bits == 32 ? kInt32 : d.bits == 64 ? kInt64 : -1;
    case kDLUInt:
      return d.bits == 8 ? kUint8 : d.bits == 32 ? kUint32 : d.bits == 64 ? kUint64 : -1;
    case kDLFloat: return d.bits == 16 ? kHalf : d.bits == 32 ? kFloat : kDouble;
    case kDLBfloat: return kBFloat;
    case kDLBool: return kUint8;
    case kDLComplex: return d.bits == 64 ? kFloat : d.bits == 128 ? kDouble : -1;
    default: return -1;
  }
}

// -1: NCCL has no such reduction of the dtype. Bools are bytes of 0 and 1.
int reduction_of(DLDataType d, uint32_t reduction) {
  const bool is_bool = d.code == kDLBool;
  switch (reduction) {
    case PLAIT_REDUCE_SUM: return is_bool ? kMax : kSum;
    case PLAIT_REDUCE_AVERAGE: return kAverage;
    case PLAIT_REDUCE_PRODUCT: return is_bool ? kMin : d.code == kDLComplex ? -1 : kProduct;
    case PLAIT_REDUCE_MIN: return kMin;
    case PLAIT_REDUCE_MAX: return kMax;
    case PLAIT_REDUCE_AND: return is_bool ? kMin : -1;
    case PLAIT_REDUCE_OR: return is_bool ? kMax : -1;
    default: return -1;
  }
}

// What is moved is bytes.
Elements elements_of(const Collective &c) {
  if (!reduces(c)) return {kInt8, kSum, size_t(plait::itemsize(c.dtype))};
  return {type_of(c.dtype), reduction_of(c.dtype, c.reduction),
          size_t(c.dtype.code == kDLComplex ? 2 : 1)};
}

char *data_of(const plait_tensor *t) { return static_cast<char *>(t->dl.data); }

// Whether tensors lie one behind the other.
bool are_adjacent(plait_tensor *const *tensors, uint32_t n, size_t bytes) {
  for (uint32_t i = 1; i < n; i++)
    if (data_of(tensors[i]) != data_of(tensors[0]) + i * bytes) return false;
  return true;
}

class Putting {
 public:
  Putting(const Collective &c, uint32_t rank, uint32_t size, const Channel &channel)
      : f_(*library()), c_(c), e_(elements_of(c)), rank_(rank), size_(size), channel_(channel) {}

  // NCCL computes a group of calls at once, so that none waits for another one.
  Result put() {
    if (const Result r = f_.group_start()) return r;
    const Result inner = put_all(), outer = f_.group_end();
    return inner ? inner : outer;
  }

 private:
  size_t count(const plait_tensor *t) const { return size_t(plait::numel(t)) * e_.each; }
  size_t bytes() const { return size_t(c_.elements) * size_t(plait::itemsize(c_.dtype)); }

  Result put_all() {
    switch (c_.kind) {
      case PLAIT_ALL_REDUCE:
        return each([&](const plait_tensor *in, plait_tensor *out) {
          return f_.all_reduce(data_of(in), data_of(out), count(in), e_.type, e_.reduction,
                               channel_.comm, channel_.stream);
        });
      case PLAIT_REDUCE:
        return each([&](const plait_tensor *in, plait_tensor *out) {
          return f_.reduce(data_of(in), out ? data_of(out) : nullptr, count(in), e_.type,
                           e_.reduction, int(c_.root), channel_.comm, channel_.stream);
        });
      case PLAIT_BROADCAST:
        return each([&](const plait_tensor *in, plait_tensor *out) {
          return broadcast(data_of(in ? in : out), out ? data_of(out) : data_of(in),
                           count(in ? in : out), c_.root);
        });
      case PLAIT_ALL_GATHER: return all_gather();
      case PLAIT_REDUCE_SCATTER: return reduce_scatter();
      case PLAIT_SEND:
        return f_.send(data_of(c_.in[0]), count(c_.in[0]), e_.type, 1, channel_.comm,
                       channel_.stream);
      case PLAIT_RECEIVE:
        return f_.receive(data_of(c_.out[0]), count(c_.out[0]), e_.type, 0, channel_.comm,
                          channel_.stream);
      default: return send_and_receive();  // gather, scatter, all_to_all
    }
  }

  template <class F>
  Result each(F &&call) {
    for (uint32_t i = 0; i < (c_.n_in ? c_.n_in : c_.n_out); i++) {
      const plait_tensor *in = i < c_.n_in ? c_.in[i] : nullptr;
      plait_tensor *out = i < c_.n_out ? c_.out[i] : nullptr;
      if (!plait::numel(in ? in : out)) continue;
      if (const Result r = call(in, out)) return r;
    }
    return kSuccess;
  }

  Result broadcast(const void *in, void *out, size_t n, uint32_t root) const {
    return f_.broadcast(in, out, n, e_.type, int(root), channel_.comm, channel_.stream);
  }

  Result all_gather() {
    const plait_tensor *in = c_.in[0];
    if (are_adjacent(c_.out, size_, bytes()))
      return f_.all_gather(data_of(in), data_of(c_.out[0]), count(in), e_.type, channel_.comm,
                           channel_.stream);
    for (uint32_t r = 0; r < size_; r++)
      if (const Result result = broadcast(data_of(in), data_of(c_.out[r]), count(in), r))
        return result;
    return kSuccess;
  }

  Result reduce_scatter() {
    const size_t n = count(c_.out[0]);
    if (are_adjacent(c_.in, size_, bytes()))
      return f_.reduce_scatter(data_of(c_.in[0]), data_of(c_.out[0]), n, e_.type, e_.reduction,
                               channel_.comm, channel_.stream);
    for (uint32_t r = 0; r < size_; r++)
      if (const Result result =
              f_.reduce(data_of(c_.in[r]), r == rank_ ? data_of(c_.out[0]) : nullptr, n, e_.type,
                        e_.reduction, int(r), channel_.comm, channel_.stream))
        return result;
    return kSuccess;
  }

  Result send_and_receive() {
    const bool is_root = c_.root == rank_;
    for (uint32_t r = 0; r < size_; r++) {
      const plait_tensor *in = nullptr;
      plait_tensor *out = nullptr;
      if (c_.kind == PLAIT_ALL_TO_ALL) in = c_.in[r], out = c_.out[r];
      if (c_.kind == PLAIT_GATHER)
        in = r == c_.root ? c_.in[0] : nullptr, out = is_root ? c_.out[r] : nullptr;
      if (c_.kind == PLAIT_SCATTER)
        in = is_root ? c_.in[r] : nullptr, out = r == c_.root ? c_.out[0] : nullptr;
      if (const Result result = exchange_with(r, in, out)) return result;
    }
    return kSuccess;
  }
  Result exchange_with(uint32_t r, const plait_tensor *in, plait_tensor *out) {
    if (in)
      if (const Result result =
              f_.send(data_of(in), count(in), e_.type, int(r), channel_.comm, channel_.stream))
        return result;
    return out ? f_.receive(data_of(out), count(out), e_.type, int(r), channel_.comm,
                            channel_.stream)
               : Result(kSuccess);
  }

  const Functions &f_;
  const Collective &c_;
  const Elements e_;
  const uint32_t rank_, size_;
  const Channel &channel_;
};

}  // namespace

plait_status check_reduction(plait_thread *thread, const Collective &c) {
  if (!reduces(c)) return PLAIT_OK;
  const Elements e = elements_of(c);
  if (e.type >= 0 && e.reduction >= 0) return PLAIT_OK;
  return thread->runtime->raise(thread, PLAIT_NOT_IMPLEMENTED, collectives::kind_name(c.kind),
                                "NCCL has no reduction `%s` of %s; tensors of the CPU have it",
                                collectives::reduction_name(c.reduction), plait::name(c.dtype));
}

Result put(const Collective &c, uint32_t rank, uint32_t size, const Channel &channel) {
  return Putting(c, rank, size, channel).put();
}

}  // namespace plait::cuda::nccl
