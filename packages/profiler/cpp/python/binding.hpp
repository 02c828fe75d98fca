// Declarations that the files of plait_profiler._observer share.
#pragma once
#include <plait/python.h>

#include <plait/entry.hpp>

#include "profiler.h"

namespace plait::profiler::python {

using plait::python::function;
using plait::python::Object;

extern const plait_python *host;

PyTypeObject *add_type(PyObject *module, PyType_Spec *);

bool add_session_type(PyObject *module);  // session.cpp: a time of recording, and its rows
extern PyMethodDef context_functions[];   // context.cpp: the module and the stack of an event

}  // namespace plait::profiler::python
