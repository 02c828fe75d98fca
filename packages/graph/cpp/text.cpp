#include "text.hpp"

#include <cmath>

#include "json.hpp"

namespace plait::graph {

const plait_runtime *runtime;
const plait_plugin *plugin;

std::string string_text(const std::string &s) {
  std::string text;
  write_json(text, std::string_view(s));
  return text;
}

std::string float_text(double x) {
  if (std::isnan(x)) return "{\"float\": \"nan\"}";
  if (std::isinf(x)) return x < 0 ? "{\"float\": \"-inf\"}" : "{\"float\": \"inf\"}";
  std::string text;
  write_json(text, x);
  return text;
}

std::string ints_text(const int64_t *p, int64_t n) {
  std::string text = "[";
  for (int64_t i = 0; i < n; i++) text += (i ? ", " : "") + std::to_string(p[i]);
  return text + "]";
}

std::string scalar_text(const plait_value &v) {
  switch (v.tag) {
    case PLAIT_BOOL: return v.u.i ? "true" : "false";
    case PLAIT_INT: return std::to_string(v.u.i);
    case PLAIT_FLOAT: return float_text(v.u.f);
    case PLAIT_COMPLEX:
      return "{\"complex\": [" + float_text(v.u.fs[0]) + ", " + float_text(v.u.fs[1]) + "]}";
    case PLAIT_STRING: return "{\"string\": " + string_text(std::string(v.u.s, v.n)) + "}";
    case PLAIT_DTYPE: return std::string("{\"dtype\": \"") + name(v.u.dtype) + "\"}";
    case PLAIT_DEVICE: return "{\"device\": \"" + device_text(runtime, v.u.device) + "\"}";
    case PLAIT_INTS: return ints_text(v.u.is, v.n);
    case PLAIT_FLOATS: {
      std::string text = "[";
      for (uint32_t i = 0; i < v.n; i++) text += (i ? ", " : "") + float_text(v.u.fs[i]);
      return text + "]";
    }
    default: return "null";
  }
}

std::string value_text(const std::string &name, const plait_tensor *t) {
  return "{\"name\": " + string_text(name) + ", \"dtype\": \"" + plait::name(t->dl.dtype) +
         "\", \"shape\": " + ints_text(t->dl.shape, t->dl.ndim) +
         ", \"strides\": " + ints_text(t->dl.strides, t->dl.ndim) + ", \"device\": \"" +
         device_text(runtime, t->dl.device) + "\"}";
}

}  // namespace plait::graph
