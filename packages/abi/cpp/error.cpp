// Error objects: one place makes every text.
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "runtime.hpp"

namespace plait::abi {
namespace {

struct ErrorObject : plait_error {
  std::string text, from;
  bool spoken = false;  // `from` called the operator that failed
};

void drop_error(plait_object *o) {
  auto *e = static_cast<ErrorObject *>(reinterpret_cast<plait_error *>(o));
  plait_release_object(e->cause);
  plait_release_object(e->host);
  delete e;
}
const plait_type error_type{PLAIT_HEADER(plait_type), "error", drop_error};

plait_status put(plait_thread *thread, plait_status code, std::string origin, std::string message,
                 plait_object *host) {
  auto *e = new ErrorObject;
  e->o = {1, &error_type};
  e->code = code;
  e->reserved = 0;
  e->from = std::move(origin);
  e->text = e->from.empty() ? std::move(message) : e->from + ": " + message;
  e->message = e->text.c_str();
  e->origin = e->from.empty() ? nullptr : e->from.c_str();
  e->cause = nullptr;
  e->host = host;
  clear(thread);
  thread->error = e;
  return code;
}

std::string format_text(const char *format, va_list args) {
  va_list again;
  va_copy(again, args);
  const int n = std::vsnprintf(nullptr, 0, format, args);
  std::string s(n > 0 ? size_t(n) : 0, '\0');
  if (n > 0) std::vsnprintf(s.data(), s.size() + 1, format, again);
  va_end(again);
  return s;
}

}  // namespace

std::string device_text(DLDevice d) {
  const auto type = uint32_t(d.device_type);
  if (type == uint32_t(PLAIT_META)) return "meta";
  if (type == kDLCPU) return "cpu";
  const plait_device *known = type < PLAIT_MAX_DEVICE_TYPES ? roles.device[type] : nullptr;
  const char *name = known ? known->name : type == kDLCUDA ? "cuda" : nullptr;
  const std::string index = ":" + std::to_string(d.device_id);
  return (name ? name : "device type " + std::to_string(type)) + index;
}

void speak_for(const plait_call *c) {
  auto *e = static_cast<ErrorObject *>(c->thread->error);
  if (!e || e->host || e->from.empty() || (c->op->flags & PLAIT_OP_INTERNAL)) return;
  std::string inner = e->from, own = static_cast<const Op *>(c->op)->parsed.base;
  const std::string said = e->text.substr(inner.size());
  if (inner.back() == '_') inner.pop_back();
  const plait_op *speaker = runtime.op(inner.c_str());
  if (!speaker || inner == own) return;
  if (c->form == PLAIT_INPLACE) own += "_";
  // of calls within calls the first and the last are named; parts that have no public name are not
  const bool named = e->spoken || (speaker->flags & PLAIT_OP_INTERNAL);
  e->text = own + (named ? said : ": " + inner + said);
  e->from = own;
  e->spoken = true;
  e->message = e->text.c_str();
  e->origin = e->from.c_str();
}

void clear(plait_thread *thread) {
  plait_error *e = thread->error;
  thread->error = nullptr;
  plait_release(e);
}

plait_status raise(plait_thread *thread, plait_status code, const char *origin, const char *format,
                   ...) {
  va_list args;
  va_start(args, format);
  std::string message = format_text(format, args);
  va_end(args);
  return put(thread, code, origin ? origin : "", std::move(message), nullptr);
}

plait_status fail(const plait_call *call, plait_status code, const char *format, ...) {
  va_list args;
  va_start(args, format);
  std::string message = format_text(format, args);
  va_end(args);
  std::string origin = static_cast<const Op *>(call->op)->parsed.base;
  if (call->form == PLAIT_INPLACE) origin += "_";
  return put(call->thread, code, std::move(origin), std::move(message), nullptr);
}

plait_status raise_host(plait_thread *thread, plait_object *exception, const char *message) {
  return put(thread, PLAIT_HOST_ERROR, "", message ? message : "", exception);
}

}  // namespace plait::abi
