// Checking what a member asks for.
#ifndef PLAIT_COLLECTIVES_ARGUMENTS_HPP
#define PLAIT_COLLECTIVES_ARGUMENTS_HPP
#include <algorithm>
#include <cinttypes>
#include <cmath>

#include "call.hpp"
#include "overlap.hpp"
#include "reducible.hpp"
#include "stream.hpp"

namespace plait::collectives {
namespace checking {

class Arguments {
 public:
  Arguments(plait_thread *thread, uint32_t rank, uint32_t size, const plait_collective &c,
            DLDeviceType type)
      : thread_(thread),
        rank_(rank),
        size_(size),
        asked_(c),
        who_(kind_name(c.kind)),
        type_(type) {}

  plait_status check(Collective &out) {
    if (asked_.kind < PLAIT_ALL_REDUCE || asked_.kind > PLAIT_BARRIER)
      return thread_->runtime->raise(thread_, PLAIT_NOT_IMPLEMENTED, "collective",
                                     "the kind %u is unknown", asked_.kind);
    if (!(asked_.timeout >= 0) || std::isinf(asked_.timeout))
      return fail(PLAIT_VALUE_ERROR, "`timeout` must be positive, got %g", asked_.timeout);
    out = {asked_.kind, 0,
           0,           0,
           0,           asked_.in,
           asked_.out,  dtype::uint8,
           0,           transfer() ? 0 : asked_.tag};
    plait_status s = check_peer(out);
    if (s >= 0) s = check_counts(out);
    if (s >= 0) s = check_tensors(out);
    if (s >= 0) s = check_elements(out);
    if (s >= 0) s = check_memory(out);
    return s < 0 ? s : check_reduction(out);
  }

 private:
  template <class... Args>
  plait_status fail(plait_status code, const char *format, Args... args) const {
    return thread_->runtime->raise(thread_, code, who_, format, args...);
  }
  bool rooted() const {
    return asked_.kind == PLAIT_BROADCAST || asked_.kind == PLAIT_REDUCE ||
           asked_.kind == PLAIT_GATHER || asked_.kind == PLAIT_SCATTER;
  }
  bool transfer() const { return asked_.kind == PLAIT_SEND || asked_.kind == PLAIT_RECEIVE; }

  plait_status check_peer(Collective &out) const {
    if (!rooted() && !transfer()) return PLAIT_OK;
    out.root = asked_.peer;
    const char *name = rooted() ? "root" : "peer";
    if (asked_.peer >= size_)
      return fail(PLAIT_VALUE_ERROR, "`%s` must be in [0, %u], got %u", name, size_ - 1,
                  asked_.peer);
    if (transfer() && asked_.peer == rank_)
      return fail(PLAIT_VALUE_ERROR, "`peer` must be another rank, got the own one, %u",
                  asked_.peer);
    return PLAIT_OK;
  }

  // which tensors of this rank take part; others are not looked at
  plait_status check_counts(Collective &out) const {
    const bool root = asked_.peer == rank_;
    const uint32_t size = size_, any = std::max(asked_.n_in, 1u);
    switch (asked_.kind) {
      case PLAIT_ALL_REDUCE: return counts(out, any, any);
      case PLAIT_BROADCAST:
        if (!root) return counts(out, 0, std::max(asked_.n_out, 1u));
        return counts(out, any, asked_.n_out ? any : 0);
      case PLAIT_REDUCE: return counts(out, any, root ? any : 0);
      case PLAIT_ALL_GATHER: return counts(out, 1, size);
      case PLAIT_GATHER: return counts(out, 1, root ? size : 0);
      case PLAIT_SCATTER: return counts(out, root ? size : 0, 1);
      case PLAIT_REDUCE_SCATTER: return counts(out, size, 1);
      case PLAIT_ALL_TO_ALL: return counts(out, size, size);
      case PLAIT_SEND: return counts(out, 1, 0);
      case PLAIT_RECEIVE: return counts(out, 0, 1);
      default: return counts(out, 0, 0);
    }
  }
  plait_status counts(Collective &out, uint32_t n_in, uint32_t n_out) const {
    out.n_in = n_in;
    out.n_out = n_out;
    const bool more_in = asked_.n_in > n_in && n_in, more_out = asked_.n_out > n_out && n_out;
    const bool there = (asked_.in || !n_in) && (asked_.out || !n_out);
    if (there && asked_.n_in >= n_in && asked_.n_out >= n_out && !more_in && !more_out)
      return PLAIT_OK;
    return fail(PLAIT_VALUE_ERROR, "%u inputs and %u outputs are required, got %u and %u", n_in,
                n_out, asked_.n_in, asked_.n_out);
  }

  plait_status check_tensors(Collective &out) const {
    const plait_tensor *first = nullptr;
    for (uint32_t i = 0; i < out.n_in + out.n_out; i++) {
      const plait_tensor *t = i < out.n_in ? out.in[i] : out.out[i - out.n_in];
      if (!t) return fail(PLAIT_TYPE_ERROR, "tensors are required, number %u is missing", i);
      const std::string place = device_text(thread_->runtime, t->dl.device);
      if (t->dl.device.device_type != type_ && type_ == kDLCPU)
        return fail(PLAIT_TYPE_ERROR, "a tensor on the CPU is required, got one on %s",
                    place.c_str());
      if (t->dl.device.device_type != type_)
        return fail(PLAIT_TYPE_ERROR,
                    "a tensor on a device of the type %s is required, got one on %s",
                    device_name(thread_->runtime, type_), place.c_str());
      if (!first) first = t;
      if (!same(t->dl.device, first->dl.device))
        return fail(PLAIT_TYPE_ERROR, "tensors on one device are required, got %s and %s",
                    device_text(thread_->runtime, first->dl.device).c_str(), place.c_str());
      if (!same(t->dl.dtype, first->dl.dtype))
        return fail(PLAIT_TYPE_ERROR, "tensors of one dtype are required, got %s and %s",
                    name(first->dl.dtype), name(t->dl.dtype));
      if (i >= out.n_in && t->storage->flags & PLAIT_STORAGE_READONLY)
        return fail(PLAIT_VALUE_ERROR, "`outputs[%u]` must be writable, got a read-only tensor",
                    i - out.n_in);
    }
    if (first) out.dtype = first->dl.dtype;
    return PLAIT_OK;
  }

  bool by_rank() const {  // there are tensors for each rank
    return asked_.kind == PLAIT_ALL_GATHER || asked_.kind == PLAIT_GATHER ||
           asked_.kind == PLAIT_SCATTER || asked_.kind == PLAIT_REDUCE_SCATTER ||
           asked_.kind == PLAIT_ALL_TO_ALL;
  }

  // tensors for ranks are of one size; other lists have the same sizes as in- and outputs
  plait_status check_elements(Collective &out) const {
    if (by_rank()) {
      const plait_tensor *first = out.n_in ? out.in[0] : out.out[0];
      out.elements = uint64_t(numel(first));
      for (uint32_t i = 0; i < out.n_in + out.n_out; i++) {
        const plait_tensor *t = i < out.n_in ? out.in[i] : out.out[i - out.n_in];
        if (numel(t) != numel(first))
          return fail(PLAIT_VALUE_ERROR,
                      "tensors of one size are required, got %" PRId64 " and %" PRId64 " elements",
                      numel(first), numel(t));
      }
      return PLAIT_OK;
    }
    out.elements =
        out.n_in ? Stream(out.in, out.n_in).elements() : Stream(out.out, out.n_out).elements();
    for (uint32_t i = 0; out.n_in && i < out.n_out; i++)
      if (numel(out.in[i]) != numel(out.out[i]))
        return fail(PLAIT_VALUE_ERROR,
                    "an output of the size of the input is required, got %" PRId64
                    " elements for %" PRId64,
                    numel(out.out[i]), numel(out.in[i]));
    return PLAIT_OK;
  }

  // each element that is written has its own place
  plait_status check_memory(const Collective &out) const {
    const Overlap result = find_overlap(out.in, out.n_in, out.out, out.n_out, by_rank());
    if (result.kind == Overlap::within_outputs)
      return fail(
          PLAIT_VALUE_ERROR,
          "`outputs[%u]` of shape %s must have a place for each element, got several in one "
          "place, or in another output's; clone() it first",
          result.index, shape_text(out.out[result.index]).c_str());
    if (result.kind == Overlap::with_input)
      return fail(
          PLAIT_VALUE_ERROR,
          "`inputs[%u]` of shape %s must be an output exactly or lie apart from all, got one "
          "that overlaps an output; clone() it first",
          result.index, shape_text(out.in[result.index]).c_str());
    return PLAIT_OK;
  }

  plait_status check_reduction(Collective &out) const {
    if (asked_.kind != PLAIT_ALL_REDUCE && asked_.kind != PLAIT_REDUCE &&
        asked_.kind != PLAIT_REDUCE_SCATTER)
      return PLAIT_OK;
    out.reduction = asked_.reduction;
    if (asked_.reduction > PLAIT_REDUCE_XOR)
      return fail(PLAIT_VALUE_ERROR, "`reduction` must be in [0, 7], got %u", asked_.reduction);
    if (can_reduce(out.dtype, out.reduction)) return PLAIT_OK;
    const char *dtype = name(out.dtype), *reduction = reduction_name(out.reduction);
    if (out.reduction == PLAIT_REDUCE_AVERAGE)
      return fail(PLAIT_TYPE_ERROR, "a floating-point dtype is required for mean, got %s", dtype);
    if (out.reduction >= PLAIT_REDUCE_AND)
      return fail(PLAIT_TYPE_ERROR, "integers or bools are required for %s, got %s", reduction,
                  dtype);
    return fail(PLAIT_TYPE_ERROR,
                "a dtype that has an order is required for %s, got %s; complex "
                "numbers have no %s",
                reduction, dtype, reduction);
  }

  plait_thread *thread_;
  const uint32_t rank_, size_;
  const plait_collective &asked_;
  const char *who_;
  const DLDeviceType type_;
};

}  // namespace checking

// What is to run, with the tensors of this rank that take part, on devices of a type; or an error.
inline plait_status check_arguments(plait_thread *thread, uint32_t rank, uint32_t size,
                                    const plait_collective &request, Collective &out,
                                    DLDeviceType type = kDLCPU) {
  return checking::Arguments(thread, rank, size, request, type).check(out);
}

}  // namespace plait::collectives
#endif  // PLAIT_COLLECTIVES_ARGUMENTS_HPP
