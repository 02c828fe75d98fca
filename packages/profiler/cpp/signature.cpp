#include "signature.hpp"

#include <plait/plait.hpp>

#include <algorithm>

namespace plait::profiler {
namespace {

bool is_dense(const DLTensor &t) {
  int64_t step = 1;
  for (int32_t i = t.ndim - 1; i >= 0; i--) {
    if (t.shape[i] != 1 && t.strides[i] != step) return false;
    step *= t.shape[i];
  }
  return true;
}

// Hashes.

uint64_t mix_tensor(uint64_t hash, const plait_tensor *t) {
  if (!t) return mix(hash, 1);
  uint32_t type;
  static_assert(sizeof type == sizeof t->dl.dtype);
  std::memcpy(&type, &t->dl.dtype, sizeof type);
  hash = mix(hash, uint64_t(type) << 32 | uint32_t(t->dl.ndim + 2));
  int64_t step = 1;
  bool dense = true;
  for (int32_t i = t->dl.ndim - 1; i >= 0; i--) {
    hash = mix(hash, uint64_t(t->dl.shape[i]));
    dense = dense && (t->dl.shape[i] == 1 || t->dl.strides[i] == step);
    step *= t->dl.shape[i];
  }
  if (!dense)
    for (int32_t i = 0; i < t->dl.ndim; i++) hash = mix(hash, ~uint64_t(t->dl.strides[i]));
  return hash;
}

uint64_t mix_value(uint64_t hash, const plait_value &v) {
  hash = mix(hash, uint64_t(uint32_t(v.tag)) << 32 | v.n);
  switch (v.tag) {
    case PLAIT_TENSOR: return mix_tensor(hash, v.u.t);
    case PLAIT_TENSORS:
      for (uint32_t i = 0; i < v.n; i++) hash = mix_tensor(hash, v.u.ts[i]);
      return hash;
    case PLAIT_BOOL:
    case PLAIT_INT: return mix(hash, uint64_t(v.u.i));
    case PLAIT_INTS:
      for (uint32_t i = 0; i < v.n; i++) hash = mix(hash, uint64_t(v.u.is[i]));
      return hash;
    case PLAIT_STRING: return hash_of(v.u.s, v.n, hash);
    case PLAIT_DTYPE: {
      uint32_t type;
      std::memcpy(&type, &v.u.dtype, sizeof type);
      return mix(hash, type);
    }
    default:  // other numbers do not change the work
      return hash;
  }
}

// Texts, as JSON: a tensor is {"t": [dtype, shape, strides or null]}.

template <class T>
std::string list(const T *items, int64_t n) {
  std::string text = "[";
  for (int64_t i = 0; i < n; i++) text += (i ? "," : "") + std::to_string(items[i]);
  return text + "]";
}

std::string tensor_text(const plait_tensor *t) {
  if (!t) return "null";
  return "{\"t\":[\"" + std::string(name(t->dl.dtype)) + "\"," + list(t->dl.shape, t->dl.ndim) +
         "," + (is_dense(t->dl) ? "null" : list(t->dl.strides, t->dl.ndim)) + "]}";
}

std::string value_text(const plait_value &v) {
  switch (v.tag) {
    case PLAIT_TENSOR: return tensor_text(v.u.t);
    case PLAIT_TENSORS: {
      std::string text = "[";
      for (uint32_t i = 0; i < v.n; i++) text += (i ? "," : "") + tensor_text(v.u.ts[i]);
      return text + "]";
    }
    case PLAIT_BOOL: return v.u.i ? "true" : "false";
    case PLAIT_INT: return std::to_string(v.u.i);
    case PLAIT_INTS: return "{\"n\":" + list(v.u.is, v.n) + "}";
    case PLAIT_STRING: return quoted(v.u.s);
    case PLAIT_DTYPE: return "\"" + std::string(name(v.u.dtype)) + "\"";
    default: return "null";
  }
}

std::string values_text(const plait_value *values, uint16_t n) {
  std::string text = "[";
  for (uint16_t i = 0; i < n; i++) text += (i ? "," : "") + value_text(values[i]);
  return text + "]";
}

// "add_" where `add` writes to its first argument, "max.dim" for an overload.
std::string call_name(const plait_call *c) {
  std::string text = c->op->name;
  if (c->form == PLAIT_INPLACE) text.insert(std::min(text.find('.'), text.size()), 1, '_');
  return text;
}

std::string call_text(const plait_runtime *runtime, const plait_call *c) {
  plait_cost cost{};
  cost.size = sizeof cost;
  runtime->cost(c, &cost);
  return "{\"name\":" + quoted(call_name(c).c_str()) +
         ",\"kind\":1,\"inputs\":" + values_text(c->in, c->n_in) +
         ",\"outputs\":" + values_text(c->out, c->n_out) +
         ",\"operations\":" + std::to_string(cost.operations) +
         ",\"read\":" + std::to_string(cost.read) + ",\"written\":" + std::to_string(cost.written) +
         ",\"composite\":" + (c->op->flags & PLAIT_OP_COMPOSITE ? "true" : "false") + "}";
}

std::string name_text(uint32_t kind, const char *name) {
  return "{\"name\":" + quoted(name) + ",\"kind\":" + std::to_string(kind) + "}";
}

}  // namespace

uint32_t signature_of(Recent &recent, const plait_runtime *runtime, const plait_call *c) {
  uint64_t hash = mix(reinterpret_cast<uintptr_t>(c->op), c->form);
  for (uint16_t i = 0; i < c->n_in; i++) hash = mix_value(hash, c->in[i]);
  for (uint16_t i = 0; i < c->n_out; i++) hash = mix_value(hash, c->out[i]);
  const uint32_t number = recent.number(signatures, hash, [&] { return call_text(runtime, c); });
  return number ? number : signature_of(recent, PLAIT_EVENT_OP, call_name(c).c_str());
}

uint32_t signature_of(Recent &recent, uint32_t kind, const char *name) {
  if (!name) return 0;
  const uint64_t hash = hash_of(name, std::strlen(name), kind);
  return recent.number(signatures, hash, [&] { return name_text(kind, name); });
}

}  // namespace plait::profiler
