// A collective that a member calls, in numbers and in words.
#ifndef PLAIT_COLLECTIVES_CALL_HPP
#define PLAIT_COLLECTIVES_CALL_HPP
#include <time.h>

#include <cstdint>
#include <cstdio>
#include <string>

#include "../plait.hpp"

namespace plait::collectives {

// No kind of the ABI: an all-gather of colors and keys.
constexpr uint32_t split_kind = 64;

struct Collective {  // arguments that were checked
  uint32_t kind, reduction, root, n_in, n_out;
  plait_tensor *const *in, *const *out;  // of any strides
  DLDataType dtype;
  uint64_t elements;  // of one member, or of one member for one rank
  int64_t tag;        // no message's: members compare it
};

struct Call {  // what all members compare
  uint32_t kind, reduction, root, dtype;
  uint64_t elements;
  int64_t tag;  // of the caller's own, such as a hash of what it calls
  bool operator==(const Call &c) const {
    return kind == c.kind && reduction == c.reduction && root == c.root && dtype == c.dtype &&
           elements == c.elements && tag == c.tag;
  }
  bool operator!=(const Call &c) const { return !(*this == c); }
};

inline Call call_of(const Collective &c) {
  const bool split = c.kind == split_kind, typed = c.kind != PLAIT_BARRIER && !split;
  return {c.kind, c.reduction, c.root, typed ? key(c.dtype) : 0, split ? 0 : c.elements, c.tag};
}

inline const char *kind_name(uint32_t kind) {
  switch (kind) {
    case PLAIT_ALL_REDUCE: return "all_reduce";
    case PLAIT_BROADCAST: return "broadcast";
    case PLAIT_REDUCE: return "reduce";
    case PLAIT_ALL_GATHER: return "all_gather";
    case PLAIT_GATHER: return "gather";
    case PLAIT_SCATTER: return "scatter";
    case PLAIT_REDUCE_SCATTER: return "reduce_scatter";
    case PLAIT_ALL_TO_ALL: return "all_to_all";
    case PLAIT_SEND: return "send";
    case PLAIT_RECEIVE: return "recv";
    case PLAIT_BARRIER: return "barrier";
    case split_kind: return "split";
    default: return "?";
  }
}

inline const char *reduction_name(uint32_t r) {
  static const char *names[] = {"sum", "mean", "product", "min", "max", "and", "or", "xor"};
  return r < 8 ? names[r] : "?";
}

inline const char *dtype_name(uint32_t key) {
  return name(DLDataType{uint8_t(key >> 8), uint8_t(key), 1});
}

inline std::string describe(const Call &c) {
  std::string s = kind_name(c.kind);
  if (c.kind == PLAIT_BARRIER || c.kind == split_kind) return s;
  s += " of " + std::to_string(c.elements) + " elements of " + dtype_name(c.dtype);
  if (c.kind == PLAIT_ALL_REDUCE || c.kind == PLAIT_REDUCE_SCATTER || c.kind == PLAIT_REDUCE)
    s += std::string(" (") + reduction_name(c.reduction) + ")";
  if (c.kind == PLAIT_BROADCAST || c.kind == PLAIT_GATHER || c.kind == PLAIT_REDUCE ||
      c.kind == PLAIT_SCATTER)
    s += " (root " + std::to_string(c.root) + ")";
  if (c.tag) s += " (tag " + std::to_string(c.tag) + ")";
  return s;
}

inline double now() {  // seconds
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

// " during FUNCTION", or nothing where the function is not known.
inline std::string during(const std::string &function) {
  return function.empty() ? "" : " during " + function;
}

inline std::string seconds(double s) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", s);
  return text;
}

}  // namespace plait::collectives
#endif  // PLAIT_COLLECTIVES_CALL_HPP
