// The position of the running Python code: the innermost frame outside of plait's own packages. It
// is read without making frame objects, in a few nanoseconds, and frames are never kept.
#include "binding.hpp"

#include <frameobject.h>  // after Python.h

#include <memory>

namespace plait::autograd::python {
namespace {

#if PY_VERSION_HEX >= 0x030F0000
struct Frame;  // of an unknown layout: call sites are known in anomaly mode only
Frame *innermost(PyThreadState *) { return nullptr; }
Frame *previous(Frame *) { return nullptr; }
PyCodeObject *code_in(Frame *) { return nullptr; }
int64_t offset_in(Frame *) { return -1; }
#elif PY_VERSION_HEX >= 0x030C0000
struct Frame {  // the beginning of the frames of CPython 3.12 to 3.14
  uintptr_t executable;  // an object; 3.14 keeps marks in the two lowest bits
  Frame *previous;
};
#if PY_VERSION_HEX >= 0x030D0000
Frame *innermost(PyThreadState *t) { return reinterpret_cast<Frame *>(t->current_frame); }
#else
Frame *innermost(PyThreadState *t) { return reinterpret_cast<Frame *>(t->cframe->current_frame); }
#endif
Frame *previous(Frame *f) { return f->previous; }
PyCodeObject *code_in(Frame *f) {
  auto *o = reinterpret_cast<PyObject *>(f->executable & ~uintptr_t(3));
  return o && PyCode_Check(o) ? reinterpret_cast<PyCodeObject *>(o) : nullptr;
}
int64_t offset_in(Frame *f) {
  return PyUnstable_InterpreterFrame_GetLasti(reinterpret_cast<_PyInterpreterFrame *>(f));
}
#elif PY_VERSION_HEX >= 0x030B0000
struct Frame {  // the beginning of CPython 3.11's frames
  void *function, *globals, *builtins, *locals;
  PyCodeObject *code;
  void *object;
  Frame *previous;
  char *before;  // the instruction before the next one
};
Frame *innermost(PyThreadState *t) { return reinterpret_cast<Frame *>(t->cframe->current_frame); }
Frame *previous(Frame *f) { return f->previous; }
PyCodeObject *code_in(Frame *f) { return f->code; }
int64_t offset_in(Frame *f) {
  return f->before - reinterpret_cast<char *>(f->code->co_code_adaptive);
}
#else
using Frame = PyFrameObject;
Frame *innermost(PyThreadState *t) { return t->frame; }
Frame *previous(Frame *f) { return f->f_back; }
PyCodeObject *code_in(Frame *f) { return f->f_code; }
int64_t offset_in(Frame *f) { return int64_t(f->f_lasti) * 2; }
#endif

// A cache of recently seen code objects, each kept alive by its hold. The GIL guards it; where
// there is none, each thread has one.
struct Known {
  PyCodeObject *code;
  plait_object *hold;  // NULL for code of plait's packages
  bool ours;
};
#ifdef Py_GIL_DISABLED
constexpr size_t kRoom = 256;
struct OfThread {
  Known all[kRoom];
  ~OfThread() {
    for (Known &k : all) plait_release_object(k.hold);
  }
};
Known *cache() {
  // behind a pointer: there is little room for variables of threads that are read quickly, as
  // `last`
  static thread_local std::unique_ptr<OfThread> mine;
  if (!mine) mine = std::make_unique<OfThread>();
  return mine->all;
}
#else
constexpr size_t kRoom = 1024;
Known known[kRoom];
Known *cache() { return known; }
#endif

const Known &look_up(PyCodeObject *code) {
  Known &k = cache()[(reinterpret_cast<uintptr_t>(code) >> 4) % kRoom];
  if (__builtin_expect(k.code == code, 1)) return k;
  plait_object *hold = state.python->hold(reinterpret_cast<PyObject *>(code));
  const char *path = PyUnicode_AsUTF8(code->co_filename);
  if (!path) PyErr_Clear();
  plait_object *old = std::exchange(k.hold, hold);
  k.code = code;
  k.ours = path && is_ours(path);
  plait_release_object(old);  // may free code, which may call this function
  return k;
}

// This thread's state if it holds the GIL; the last result is tried first.
__attribute__((tls_model("initial-exec"))) __thread PyThreadState *last = nullptr;
PyThreadState *holder() {
  PyThreadState *running = _PyThreadState_UncheckedGet();  // of the thread that holds the GIL
  if (running && running == last && running->thread_id == PyThread_get_thread_ident())
    return running;
  last = PyGILState_Check() ? running : nullptr;
  return last;
}

}  // namespace

bool is_ours(const char *path) {
  static const char *const packages[] = {"/plait_abi/",      "/plait_ops/", "/plait_core/",
                                         "/plait_autograd/", "/plait_nn/",  "/plait_optim/"};
  for (const char *package : packages)
    if (std::strstr(path, package)) return true;
  // "<shim>": where CPython 3.12 enters from C
  return std::strncmp(path, "<frozen", 7) == 0 || std::strcmp(path, "<shim>") == 0;
}

bool position_of_caller(plait_object **code, int64_t *offset) {
  PyThreadState *thread = holder();
  if (!thread) return false;
  for (Frame *f = innermost(thread); f; f = previous(f)) {
    PyCodeObject *c = code_in(f);
    if (!c) continue;
    const Known &k = look_up(c);
    if (k.ours || k.code != c) continue;
    plait_retain_object(k.hold);
    *code = k.hold;
    *offset = offset_in(f);
    break;
  }
  return true;
}

}  // namespace plait::autograd::python
