// Call sites: the position of the innermost Python code outside of plait's own packages. Frames are
// never kept.
#include <cstring>

#include "../cpython/frames.hpp"
#include "binding.hpp"

namespace plait::python {
namespace {

#ifdef Py_GIL_DISABLED
bool is_ours(PyCodeObject *code) { return is_own_file(code->co_filename); }
plait_object *hold_code(PyCodeObject *code) { return hold(reinterpret_cast<PyObject *>(code)); }
#else
// A cache of recently seen code objects, each kept alive by its hold. The GIL guards it.
struct Known {
  PyCodeObject *code;
  plait_object *hold;
  bool ours;
};

const Known &look_up(PyCodeObject *code) {
  static Known known[1024];
  Known &k = known[(reinterpret_cast<uintptr_t>(code) >> 4) % 1024];
  if (__builtin_expect(k.code == code, 1)) return k;
  plait_object *held = hold(reinterpret_cast<PyObject *>(code));
  plait_object *old = std::exchange(k.hold, held);
  k.code = code;
  k.ours = is_own_file(code->co_filename);
  plait_release_object(old);  // may free code, which may call this function
  return k;
}

bool is_ours(PyCodeObject *code) {
  const Known &k = look_up(code);
  return k.ours && k.code == code;
}
plait_object *hold_code(PyCodeObject *code) {
  const Known &k = look_up(code);
  if (k.code != code) return hold(reinterpret_cast<PyObject *>(code));
  plait_retain_object(k.hold);
  return k.hold;
}
#endif

}  // namespace

bool is_own_file(PyObject *path) {
  // Names of packages, not a prefix: a program may be in a folder "plait_experiments".
  static const char *const packages[] = {
      "/plait_abi/",   "/plait_ops/",      "/plait_core/",
      "/plait_nn/",    "/plait_autograd/", "/plait_optim/",
      "/plait_data/",  "/plait_profiler/", "/plait_multiprocessing/",
      "/plait_torch/", "/plait_ray/",      "/plait_distributed/",
      "/plait_mpi/",   "/plait_ucx/",      "/plait_func/",
      "/plait_cuda/",  "/plait_graph/",    "/plait_conformance/",
      "/plait_onnx/"};
  const char *text = PyUnicode_AsUTF8(path);
  if (!text) {
    PyErr_Clear();
    return false;
  }
  for (const char *package : packages)
    if (std::strstr(text, package)) return true;
  // "<shim>": where CPython 3.12 enters from C
  return std::strncmp(text, "<frozen", 7) == 0 || std::strcmp(text, "<shim>") == 0;
}

void find_user_code(plait_site *out) {
  *out = {nullptr, 0};
  PyCodeObject *result = nullptr;
  int64_t offset = 0;
  for (Frames frames; PyCodeObject *code = frames.code(); frames.next()) {
    const bool user = !is_ours(code);
    if (user || !result) {
      result = code;  // it runs, so it stays
      offset = frames.offset();
    }
    if (user) break;
  }
  if (result) *out = {hold_code(result), offset};
}

}  // namespace plait::python
