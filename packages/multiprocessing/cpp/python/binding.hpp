// Declarations that the files of plait_multiprocessing._shared share.
#pragma once
#include <plait/python.h>

#include <plait/entry.hpp>
#include <plait/plait.hpp>
#include <vector>

#include "shared.h"

namespace plait::multiprocessing::python {

using plait::python::function;
using plait::python::Object;

struct State {
  const plait_python *python;
  const plait_runtime *runtime;
  PyTypeObject *block_type, *ticket_type, *pin_type;
};
extern State state;

inline PyObject *raise(plait_status s) { return state.python->raise(state.runtime->thread(), s); }

// From block.cpp: a shared storage as an object with a buffer; tickets; pins.
PyObject *new_block(plait_storage *);         // steals
plait_storage *storage_in(PyObject *);        // borrowed; nullptr with an exception
PyObject *new_pin(void *pin);                 // steals
// of a ticket, without those that are there already; false with an exception
bool add_descriptors(PyObject *ticket, std::vector<int> &);
void settle(PyObject *ticket);  // its message is on its way
bool add_block_types(PyObject *module);
extern PyMethodDef block_functions[];

// From tensors.cpp: tensors and the storages under them.
extern PyMethodDef tensor_functions[];
PyObject *block_tensor(PyObject *block, PyObject *const *args, Py_ssize_t n);
plait_tensor *tensor_in(PyObject *);  // borrowed; nullptr with an exception
bool can_share(DLDevice);             // whether other processes can have the device's memory

// From channel.cpp: messages with descriptors over sockets.
extern PyMethodDef channel_functions[];

// From processes.cpp: forks.
extern PyMethodDef fork_functions[];

PyTypeObject *add_type(PyObject *module, PyType_Spec *);

}  // namespace plait::multiprocessing::python
