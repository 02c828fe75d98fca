// Python's global interpreter lock, and the exception that is on its way, for code that C++ calls
// on whatever thread. Only extension modules include this file.
#ifndef PLAIT_GIL_HPP
#define PLAIT_GIL_HPP
#include <Python.h>

#include <cxxabi.h>
#include <unistd.h>

#if defined(Py_GIL_DISABLED) || PY_VERSION_HEX < 0x030D0000
#include "fork.hpp"
#endif
#ifdef Py_GIL_DISABLED
#if PY_VERSION_HEX < 0x030E0000
#error "free-threaded Python is supported from 3.14 on"
#endif
#endif

namespace plait::python {

// Runs what may wait for the lock. CPython ends daemon threads that wait for it while the
// interpreter goes, by an unwinding that borders and destructors would turn into std::terminate:
// they wait for the end of the process here.
template <class F>
void wait_for_lock(F &&wait) noexcept {
  try {
    wait();
  } catch (const abi::__forced_unwind &) {
    for (;;) pause();
  }
}

#if PY_VERSION_HEX < 0x030D0000
// Held while a thread that Python did not start makes its thread state, which it does without the
// global lock. CPython's own lock of the list of states is left taken in the child of a fork that
// comes meanwhile: up to 3.11 `os.fork` never returns there (gh-112275), and until 3.13 the list
// may be damaged. A fork waits for a ForkMutex.
inline __attribute__((visibility("hidden"))) ForkMutex thread_states;
#endif

// Takes the lock for a scope, on any thread.
class Gil {
 public:
  Gil() {
#if PY_VERSION_HEX < 0x030D0000
    if (!PyGILState_GetThisThreadState()) {
      const std::lock_guard<ForkMutex> lock(thread_states);
      own_ = PyThreadState_New(PyInterpreterState_Main());
    }
#endif
    wait_for_lock([this] {
      if (own_)
        PyEval_RestoreThread(own_);
      else
        state_ = PyGILState_Ensure();
    });
  }
  ~Gil() {
    if (own_) {
      PyThreadState_Clear(own_);
      PyThreadState_DeleteCurrent();
    } else {
      PyGILState_Release(state_);
    }
  }
  Gil(const Gil &) = delete;
  Gil &operator=(const Gil &) = delete;

 private:
  PyThreadState *own_ = nullptr;  // of a thread that had none
  PyGILState_STATE state_{};
};

// A lock of data that is otherwise guarded by the global lock: it does nothing on interpreters that
// have one. It is held for a few instructions, which never wait and call no Python code.
#ifdef Py_GIL_DISABLED
using HostLock = ProcessLock;
#else
class HostLock {
 public:
  void lock() noexcept {}
  void unlock() noexcept {}
};
#endif
// Holds such a lock for a scope.
class HostGuard {
 public:
  explicit HostGuard(HostLock &lock) noexcept : lock_(lock) { lock_.lock(); }
  ~HostGuard() { lock_.unlock(); }
  HostGuard(const HostGuard &) = delete;
  HostGuard &operator=(const HostGuard &) = delete;

 private:
  HostLock &lock_;
};

// A reference that one thread may replace while others take it.
class SharedReference {
 public:
  PyObject *get() {  // a new reference, or nullptr
    const HostGuard guard(lock_);
    Py_XINCREF(object_);
    return object_;
  }
  PyObject *exchange(PyObject *next) {  // steals, and hands the reference that was there over
    const HostGuard guard(lock_);
    PyObject *before = object_;
    object_ = next;
    return before;
  }

 private:
  PyObject *object_ = nullptr;
  HostLock lock_;
};

// Sets an exception that is on its way aside for a scope, in which Python can be called.
class PendingError {
 public:
  PendingError() { PyErr_Fetch(&type_, &value_, &traceback_); }
  ~PendingError() { PyErr_Restore(type_, value_, traceback_); }
  PendingError(const PendingError &) = delete;
  PendingError &operator=(const PendingError &) = delete;

 private:
  PyObject *type_, *value_, *traceback_;
};

}  // namespace plait::python
#endif  // PLAIT_GIL_HPP
