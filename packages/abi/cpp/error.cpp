// Error objects and their texts.
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>

#include "runtime.hpp"

namespace plait::abi {
namespace {

struct ErrorObject : plait_error {
  std::string text, from;
  bool renamed = false;  // `from` called the operator that failed
};

void drop_error(plait_object *o) {
  auto *e = static_cast<ErrorObject *>(reinterpret_cast<plait_error *>(o));
  plait_release_object(e->cause);
  plait_release_object(e->host);
  delete e;
}
const plait_type error_type{PLAIT_HEADER(plait_type), "error", drop_error};

// The error that is raised if there is no memory for an error object. It is shared; `keep_error`
// takes a reference whenever one is dropped, so that it is never freed.
void keep_error(plait_object *o) { plait_retain_object(o); }
const plait_type last_error_type{PLAIT_HEADER(plait_type), "error", keep_error};
plait_error last_error{
    {1, &last_error_type}, PLAIT_MEMORY_ERROR, 0, "out of memory", nullptr, nullptr, nullptr};

plait_status put_last(plait_thread *thread) {
  clear(thread);
  plait_retain_object(&last_error.o);
  thread->error = &last_error;
  return PLAIT_MEMORY_ERROR;
}

plait_status put(plait_thread *thread, plait_status code, std::string origin, std::string message,
                 plait_object *host) {
  std::unique_ptr<ErrorObject> e(new ErrorObject);
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
  thread->error = e.release();
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

// Sets the thread's error to a text, or to `last_error` if there is no memory for it. Callers are
// often C, or report that there is no memory, so nothing may be thrown.
template <class Origin>
plait_status tell(plait_thread *thread, plait_status code, const char *format, va_list args,
                  Origin &&origin) noexcept {
  try {
    return put(thread, code, origin(), format_text(format, args), nullptr);
  } catch (const std::bad_alloc &) {
    return put_last(thread);
  }
}

}  // namespace

std::string device_text(DLDevice d) { return plait::device_text(&runtime, d); }

void rename_origin(const plait_call *c) {
  if (!c->thread->error || c->thread->error == &last_error) return;
  auto *e = static_cast<ErrorObject *>(c->thread->error);
  if (e->host || e->from.empty() || (c->op->flags & PLAIT_OP_INTERNAL)) return;
  std::string inner = e->from, own = static_cast<const Op *>(c->op)->parsed.base;
  const std::string said = e->text.substr(inner.size());
  const plait_op *inner_op = runtime.op(inner.c_str());
  if (!inner_op && inner.back() == '_') {  // an in-place form; `fill_` is an operator's own name
    inner.pop_back();
    inner_op = runtime.op(inner.c_str());
  }
  if (!inner_op) return;
  const auto without_mark = [](const std::string &name) {
    return name.back() == '_' ? name.substr(0, name.size() - 1) : name;
  };
  const bool is_same = without_mark(inner) == without_mark(own);
  if (c->form == PLAIT_INPLACE) own += "_";
  // Of calls within calls the outermost and the innermost are named. Internal operators are not,
  // nor are parts of an operator with kernels: another device may do without them. What has no
  // kernel is.
  const bool is_part = !(c->op->flags & PLAIT_OP_COMPOSITE) && e->code != PLAIT_NOT_IMPLEMENTED;
  const bool named = is_same || is_part || e->renamed || (inner_op->flags & PLAIT_OP_INTERNAL);
  e->text = own + (named ? said : ": " + inner + said);
  e->from = own;
  e->renamed |= !is_same;
  e->message = e->text.c_str();
  e->origin = e->from.c_str();
}

void name_caller(const plait_call *c) {
  try {
    rename_origin(c);
  } catch (const std::bad_alloc &) {  // the error stays as it is, or its text is cut
    plait_error *e = c->thread->error;
    if (e != &last_error) {
      e->message = static_cast<ErrorObject *>(e)->text.c_str();
      e->origin = static_cast<ErrorObject *>(e)->from.c_str();
    }
  }
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
  const plait_status s = tell(thread, code, format, args, [&] { return origin ? origin : ""; });
  va_end(args);
  return s;
}

plait_status fail(const plait_call *call, plait_status code, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const plait_status s = tell(call->thread, code, format, args, [&] {
    const std::string &base = static_cast<const Op *>(call->op)->parsed.base;
    return call->form == PLAIT_INPLACE ? base + "_" : base;
  });
  va_end(args);
  return s;
}

plait_status named(const plait_call *call, plait_status s) {
  const std::string reason = call->thread->error ? call->thread->error->message : "";
  return fail(call, s, "%s", reason.c_str());
}

plait_status raise_host(plait_thread *thread, plait_object *exception, const char *message) {
  try {
    return put(thread, PLAIT_HOST_ERROR, "", message ? message : "", exception);
  } catch (const std::bad_alloc &) {
    plait_release_object(exception);
    return put_last(thread);
  }
}

}  // namespace plait::abi
