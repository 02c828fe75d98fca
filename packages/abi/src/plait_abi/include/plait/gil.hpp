// Python's global interpreter lock, and the exception that is on its way, for code that C++ calls
// on whatever thread. Only extension modules include this file.
#ifndef PLAIT_GIL_HPP
#define PLAIT_GIL_HPP
#include <Python.h>

#include <cxxabi.h>
#include <unistd.h>

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

// Takes the lock for a scope, on any thread.
class Gil {
 public:
  Gil() {
    wait_for_lock([this] { state_ = PyGILState_Ensure(); });
  }
  ~Gil() { PyGILState_Release(state_); }
  Gil(const Gil &) = delete;
  Gil &operator=(const Gil &) = delete;

 private:
  PyGILState_STATE state_;
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
