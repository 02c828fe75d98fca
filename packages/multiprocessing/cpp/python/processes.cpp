// Children of a fork that only _exit ends. A child of a process with threads lacks these threads,
// so what else would end it must not happen: a return into the caller's frames, which are its
// parent's program, and libc's exit, whose destructors may wait for a thread of the parent.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>

#include "binding.hpp"

namespace plait::multiprocessing::python {
namespace {

constexpr int failure = 1;

sigset_t block_signals() {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  return before;
}

#ifdef __GLIBC__
// If a library calls exit in the child, this runs before the functions that the parent registered.
void exit_at_once(int status, void *) {
  fflush(nullptr);
  _exit(status);
}
#endif

void flush(const char *stream) {
  PyObject *file = PySys_GetObject(stream);  // borrowed
  if (!file || file == Py_None) return;
  Object held(Py_NewRef(file));
  if (!Object(PyObject_CallMethod(file, "flush", nullptr))) PyErr_Clear();
}

// The exit status for the value of SystemExit, as Python has it.
int status_of(PyObject *value) {
  Object code(PyObject_GetAttrString(value, "code"));
  if (!code) return failure;
  if (code.get() == Py_None) return 0;
  if (PyLong_Check(code.get())) return static_cast<int>(PyLong_AsLong(code.get()) & 0xff);
  PySys_FormatStderr("%S\n", code.get());
  return failure;
}

// The exit status for the pending exception, which is printed. PyErr_Print would call exit.
int status_of_exception() {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (PyErr_GivenExceptionMatches(type, PyExc_SystemExit)) return status_of(value);
  PyErr_Display(type, value, traceback);
  return failure;
}

sigset_t before_fork;  // the mask of signals, which a child restores in run_to_exit

// A fork whose child returns with all signals blocked, as Python drops those that come to a new
// child. In the parent they are blocked until the hooks of the fork are done.
pid_t fork_blocked() {
  PyOS_BeforeFork();
  before_fork = block_signals();
  const pid_t child = fork();
  const int error = errno;
  if (child == 0) {
#ifdef __GLIBC__
    on_exit(exit_at_once, nullptr);
#endif
    PyOS_AfterFork_Child();
    return 0;
  }
  const sigset_t mask = before_fork;
  PyOS_AfterFork_Parent();
  pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  errno = error;
  return child;
}

[[noreturn]] void run_and_exit(PyObject *run) {
  pthread_sigmask(SIG_SETMASK, &before_fork, nullptr);
  Object result(PyObject_CallNoArgs(run));
  block_signals();
  int status = failure;
  if (!result)
    status = status_of_exception();
  else if (PyLong_Check(result.get()))
    status = static_cast<int>(PyLong_AsLong(result.get()) & 0xff);
  PyErr_Clear();
  flush("stdout");
  flush("stderr");
  plait_shared_leave();
  _exit(status);
}

PyObject *fork_signals_blocked(PyObject *, PyObject *) {
  if (PySys_Audit("os.fork", nullptr) < 0) return nullptr;
  const pid_t child = fork_blocked();
  return child < 0 ? PyErr_SetFromErrno(PyExc_OSError) : PyLong_FromLong(child);
}

PyObject *run_to_exit(PyObject *, PyObject *run) { run_and_exit(run); }

PyObject *fork_to_run(PyObject *, PyObject *run) {
  if (PySys_Audit("os.fork", nullptr) < 0) return nullptr;
  const pid_t child = fork_blocked();
  if (child == 0) run_and_exit(run);
  return child < 0 ? PyErr_SetFromErrno(PyExc_OSError) : PyLong_FromLong(child);
}

}  // namespace

PyMethodDef fork_functions[] = {
    {"fork_to_run", fork_to_run, METH_O,
     "Fork; return the child's pid. The child calls the function and exits with what it returns."},
    {"fork_blocked", fork_signals_blocked, METH_NOARGS,
     "Fork as os.fork does; the child has all signals blocked until it calls run_to_exit."},
    {"run_to_exit", run_to_exit, METH_O,
     "Call the function in a child of fork_blocked, and exit with what it returns."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace plait::multiprocessing::python
