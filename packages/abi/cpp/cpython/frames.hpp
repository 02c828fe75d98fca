// A walk over this thread's Python frames, from the innermost one. Where the layout of frames is
// known, CPython 3.11 to 3.14, it makes no frame objects: each recorded operator takes 75 ns less.
// Elsewhere, and with PLAIT_PUBLIC_FRAMES, it uses documented functions alone. Nothing else of this
// package depends on private parts of CPython.
#pragma once
#include <Python.h>
#include <frameobject.h>  // PyFrame_GetBack, in Python.h itself only from 3.11

#include <cstdint>

namespace plait::python {

#if PY_VERSION_HEX < 0x030B0000 || PY_VERSION_HEX >= 0x030F0000 || defined(PYPY_VERSION)
#undef PLAIT_PUBLIC_FRAMES
#define PLAIT_PUBLIC_FRAMES
#endif

#ifdef PLAIT_PUBLIC_FRAMES
class Frames {
 public:
  Frames() : frame_(PyThreadState_GetFrame(PyThreadState_Get())) { read(); }
  ~Frames() {
    Py_XDECREF(code_);
    Py_XDECREF(frame_);
  }
  Frames(const Frames &) = delete;
  Frames &operator=(const Frames &) = delete;
  PyCodeObject *code() const { return code_; }  // borrowed; NULL at the end
  int64_t offset() const {  // of the instruction in the code
#if PY_VERSION_HEX >= 0x030B0000
    return PyFrame_GetLasti(frame_);
#else
    PyObject *offset = PyObject_GetAttrString(reinterpret_cast<PyObject *>(frame_), "f_lasti");
    const int64_t result = offset ? PyLong_AsLongLong(offset) : -1;
    Py_XDECREF(offset);
    return result;
#endif
  }
  void next() {
    PyFrameObject *back = PyFrame_GetBack(frame_);
    Py_DECREF(frame_);
    frame_ = back;
    Py_CLEAR(code_);
    read();
  }

 private:
  void read() {
    if (frame_) code_ = PyFrame_GetCode(frame_);
  }
  PyFrameObject *frame_;
  PyCodeObject *code_ = nullptr;
};

#else
class Frames {
 public:
  Frames() : frame_(innermost(PyThreadState_Get())) { read(); }
  Frames(const Frames &) = delete;
  Frames &operator=(const Frames &) = delete;
  PyCodeObject *code() const { return code_; }  // borrowed; NULL at the end
  int64_t offset() const {                      // of the instruction in the code
#if PY_VERSION_HEX >= 0x030C0000
    return PyUnstable_InterpreterFrame_GetLasti(reinterpret_cast<_PyInterpreterFrame *>(frame_));
#else
    return frame_->before - reinterpret_cast<char *>(code_->co_code_adaptive);
#endif
  }
  void next() {
    frame_ = frame_->previous;
    read();
  }

 private:
#if PY_VERSION_HEX >= 0x030C0000
  struct Frame {           // the beginning of the frames of CPython 3.12 to 3.14
    uintptr_t executable;  // an object; 3.14 keeps marks in the two lowest bits
    Frame *previous;
  };
  static PyCodeObject *code_in(const Frame *f) {  // NULL: a frame of C
    auto *o = reinterpret_cast<PyObject *>(f->executable & ~uintptr_t(3));
    return o && PyCode_Check(o) ? reinterpret_cast<PyCodeObject *>(o) : nullptr;
  }
#else
  struct Frame {  // the beginning of CPython 3.11's frames
    void *function, *globals, *builtins, *locals;
    PyCodeObject *code;
    void *object;
    Frame *previous;
    char *before;  // the instruction before the next one
  };
  static PyCodeObject *code_in(const Frame *f) { return f->code; }
#endif
  static Frame *innermost(PyThreadState *t) {
#if PY_VERSION_HEX >= 0x030D0000
    return reinterpret_cast<Frame *>(t->current_frame);
#else
    return reinterpret_cast<Frame *>(t->cframe->current_frame);
#endif
  }
  void read() {
    for (code_ = nullptr; frame_; frame_ = frame_->previous)
      if ((code_ = code_in(frame_))) return;
  }
  Frame *frame_;
  PyCodeObject *code_;
};
#endif

}  // namespace plait::python
