// plait_graph._graph: captures and programs for Python.
#include <plait/batched.h>
#include <plait/python.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>

#include "deferral/deferral.hpp"
#include "program/control_flow.hpp"
#include "program/sized_program.hpp"
#include "python/compiler.hpp"
#include "python/guard.hpp"
#include "recording/recorder.hpp"
#include "run/file.hpp"

namespace py = pybind11;

namespace plait::graph {
namespace {

const plait_python *python;
plait_batched *core;
const plait_plugin recorder_plugin{
    PLAIT_HEADER(plait_plugin), "plait_graph", "0.2.0", 0, nullptr, nullptr};

[[noreturn]] void raise(plait_thread *thread, plait_status s) {
  python->raise(thread, s);
  throw py::error_already_set();
}

py::object wrap(const Tensor &t) {
  if (!t) return py::none();
  plait_retain(t.get());
  PyObject *object = python->wrap(t.get());
  if (!object) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(object);
}

plait_tensor *handle_of(py::handle object) {
  plait_tensor *t = python->unwrap(object.ptr());
  if (t) return t;
  if (PyErr_Occurred()) throw py::error_already_set();
  throw py::type_error(std::string("a tensor is required, got ") + Py_TYPE(object.ptr())->tp_name);
}

std::vector<Tensor> handles(const py::sequence &tensors) {
  std::vector<Tensor> result;
  for (const py::handle each : tensors) result.push_back(Tensor::share(handle_of(each)));
  return result;
}

// A recorder that Python begins and ends.
class Capture {
 public:
  explicit Capture(bool is_region) : recorder_(is_region) {}
  Capture(const Capture &) = delete;
  Capture &operator=(const Capture &) = delete;
  ~Capture() { stop(); }
  void start() {
    thread_ = runtime->thread();
    if (const plait_status s = start_recording(thread_, &recorder_, &before_); s < 0) {
      plait_thread *thread = std::exchange(thread_, nullptr);
      raise(thread, s);
    }
  }
  void stop() {
    if (!thread_) return;
    if (runtime->thread() != thread_)
      throw py::value_error("a capture ends on the thread on which it began");
    stop_recording(std::exchange(thread_, nullptr), before_);
  }
  std::string name_of(const py::object &tensor) { return recorder_.name_of(handle_of(tensor)); }
  void forget_dead() { recorder_.forget_dead(); }
  void end_arguments() { recorder_.end_arguments(); }
  std::string find(const py::object &tensor) { return recorder_.find(handle_of(tensor)); }
  void add_regions(const std::string &begin, const std::string &regions,
                   const py::sequence &results) {
    recorder_.add_regions(begin, regions, handles(results));
  }
  void note_inner(const py::object &tensor) { recorder_.note_inner(handle_of(tensor)); }
  void note_region(const Capture &region, const py::sequence &results) {
    recorder_.note_region(region.recorder_, handles(results));
  }
  std::string nodes() const { return "[" + recorder_.nodes() + "]"; }
  uint64_t size() const { return recorder_.size(); }
  bool reads_offsets() const { return recorder_.reads_offsets(); }
  std::string values() const { return "[" + recorder_.values() + "]"; }
  std::string problem() const { return recorder_.problem(); }
  void select(std::unordered_set<std::string> apart, std::unordered_set<std::string> refused) {
    recorder_.select(std::move(apart), std::move(refused));
  }
  void keep_copies() { recorder_.keep_copies(); }
  py::list copies() const {
    py::list result;
    for (const Recorder::Copy &each : recorder_.copies())
      result.append(py::make_tuple(each.node, each.name, wrap(each.tensor)));
    return result;
  }
  void follow_sizes() { recorder_.follow_sizes(); }
  py::list comparisons() const {
    py::list result;
    for (const Recorder::Comparison &each : recorder_.comparisons())
      result.append(py::make_tuple(each.relation, each.a, each.b));
    return result;
  }
  py::list outside() const {
    py::list result;
    for (const Recorder::Outside &each : recorder_.outside())
      result.append(py::make_tuple(each.name, wrap(each.tensor), each.description));
    return result;
  }

 private:
  Recorder recorder_, *before_ = nullptr;  // that which goes on behind it
  plait_thread *thread_ = nullptr;
};

void read_sizes_by(const py::object &reader);

thread_local PyObject *current_capture;  // borrowed: its Running holds it

// A `with` statement within which a capture gets the calls of the thread. No code of Python runs at
// its begin and end, so that no signal handler can raise there and leave the capture on.
class Running {
 public:
  Running(py::object capture, py::object reads)
      : capture_(std::move(capture)), reads_(std::move(reads)) {
    const py::module_ core = py::module_::import("plait_core");
    get_num_threads_ = core.attr("get_num_threads");
    set_num_threads_ = core.attr("set_num_threads");
  }
  Running(const Running &) = delete;
  Running &operator=(const Running &) = delete;
  ~Running() {  // without the exit: a debugger or a tracer raised before it
    if (threads_ && runtime->thread() == thread_) end();
  }
  void enter() {
    const py::object threads = get_num_threads_();
    capture_.cast<Capture &>().start();
    threads_ = threads;
    thread_ = runtime->thread();
    before_ = std::exchange(current_capture, capture_.ptr());
    // the engine may run derivatives on several threads; their calls would be in no order
    set_num_threads_(1);
    if (!reads_.is_none()) read_sizes_by(reads_);
  }
  void exit(const py::args &) {
    if (threads_) end();
  }

 private:
  void end() {
    const py::object threads = std::exchange(threads_, py::object());
    if (!reads_.is_none()) read_sizes_by(py::none());
    current_capture = before_;
    set_num_threads_(threads);
    capture_.cast<Capture &>().stop();
  }

  py::object capture_, reads_, get_num_threads_, set_num_threads_;
  py::object threads_;  // before it began; null where it does not run
  PyObject *before_ = nullptr;
  plait_thread *thread_ = nullptr;
};

// The calls that a compiled function made, and those that it makes now.
class Calls {
 public:
  explicit Calls(const std::string &name) { trie_->name = name; }
  bool begin() {
    if (!start_deferral(runtime->thread(), trie_.get())) return false;
    __atomic_store_n(&core->layers_of_caches, layer_of_deferral(), __ATOMIC_RELAXED);
    return true;
  }
  void end() {
    plait_thread *thread = runtime->thread();
    if (const plait_status s = stop_deferral(thread); s < 0) raise(thread, s);
  }
  size_t size() const { return trie_->size(); }
  std::vector<std::string> graphs() const { return trie_->graphs(); }

 private:
  std::unique_ptr<Trie> trie_ = std::make_unique<Trie>();
};

// Core says that Python is about to get at the elements of a tensor; with an exception it must not.
void make_waiting_calls(const plait_tensor *t) {
  plait_thread *thread = runtime->thread();
  if (const plait_status s = flush_before_read(thread, t); s < 0) python->raise(thread, s);
}
void begin_read(const plait_tensor *t) {
  note_read(t);
  make_waiting_calls(t);
}

// Calls a function that may raise plait::Error, without the GIL.
template <class F>
void unlocked(F &&f) {
  plait_thread *thread = runtime->thread();
  plait_status s = PLAIT_OK;
  {
    const py::gil_scoped_release release;
    s = border(thread, "graph", [&] { return f(thread), PLAIT_OK; });
  }
  if (PyErr_Occurred()) {  // a signal's handler raised it
    runtime->clear(thread);
    throw py::error_already_set();
  }
  if (s < 0) raise(thread, s);
}

// Runs the handlers of signals, such as that of Ctrl-C; whether one raised an exception.
bool has_raising_signal() {
  const py::gil_scoped_acquire lock;
  return PyErr_CheckSignals() < 0;
}

template <class P>
std::unique_ptr<P> parse(const std::string &text) {
  std::unique_ptr<P> program;
  unlocked([&](plait_thread *thread) { program = P::parse(thread, text); });
  return program;
}

template <class P>
void bind(P &program, const py::sequence &weights) {
  const std::vector<Tensor> all = handles(weights);
  unlocked([&](plait_thread *thread) { program.bind(thread, all); });
}

// Calls `observer`, if it is not None, behind each node that ran.
py::list run(Program &program, const py::sequence &inputs, const py::object &observer) {
  const std::vector<Tensor> held = handles(inputs);
  std::vector<plait_tensor *> all;
  for (const Tensor &t : held) all.push_back(t.get());
  std::vector<Tensor> outputs;
  Program::Observer observe;
  std::optional<py::error_already_set> error;  // of the observer; it is not called again
  if (!observer.is_none())
    observe = [&](size_t node) {
      const py::gil_scoped_acquire acquire;
      try {
        if (!error) observer(node);
      } catch (py::error_already_set &e) {
        error.emplace(std::move(e));
      }
    };
  unlocked([&](plait_thread *thread) {
    program.run(thread, all.data(), all.size(), &outputs, observe);
  });
  if (error) throw std::move(*error);
  py::list result(outputs.size());
  for (size_t i = 0; i < outputs.size(); i++) result[i] = wrap(outputs[i]);
  return result;
}

// A guard and a program in one call, as each costs as much as a small program.
py::object run_guarded(const Guard &guard, Program &program, const py::tuple &args) {
  if (!guard.holds(args)) return py::none();
  const std::vector<Tensor> held = handles(args);
  std::vector<plait_tensor *> all;
  for (const Tensor &t : held) all.push_back(t.get());
  std::vector<Tensor> outputs;
  unlocked([&](plait_thread *thread) { program.run(thread, all.data(), all.size(), &outputs); });
  return wrap(outputs.front());
}

py::list run_sized(SizedProgram &program, const py::sequence &inputs) {
  const std::vector<Tensor> held = handles(inputs);
  std::vector<plait_tensor *> all;
  for (const Tensor &t : held) all.push_back(t.get());
  std::vector<Tensor> outputs;
  unlocked([&](plait_thread *thread) { program.run(thread, all.data(), all.size(), &outputs); });
  py::list result(outputs.size());
  for (size_t i = 0; i < outputs.size(); i++) result[i] = wrap(outputs[i]);
  return result;
}

Number &number(Program &program, const std::string &name) {
  for (Number &each : program.numbers())
    if (each.name == name) return each;
  throw py::key_error(name);
}

std::string device_graph(Program &program) {
  std::string text;
  unlocked([&](plait_thread *) { text = program.device_graph_text(); });
  return text;
}

py::list written_weights(const Program &program) {
  py::list result;
  for (size_t i = 0; i < program.n_weights(); i++)
    if (program.writes_weight(i)) result.append(program.weight_names()[i]);
  return result;
}

py::dict numbers(Program &program) {
  py::dict result;
  for (const Number &each : program.numbers()) {
    if (each.is_integer)
      result[py::str(each.name)] = each.integer;
    else
      result[py::str(each.name)] = each.real;
  }
  return result;
}

// A program of the graph, whose names are those for all sizes.
Program &any_program(SizedProgram &sized) {
  Program *program = nullptr;
  unlocked([&](plait_thread *thread) { program = &sized.program(thread); });
  return *program;
}
std::vector<std::string> weights_of(SizedProgram &sized) {
  return any_program(sized).weight_names();
}
py::list written_of(SizedProgram &sized) { return written_weights(any_program(sized)); }

void set_number(Program &program, const std::string &name, const py::object &value) {
  Number &n = number(program, name);
  if (n.is_integer) n.integer = value.cast<int64_t>();
  n.real = value.cast<double>();
}

const plait_op *known_operator(const std::string &name) {
  const plait_op *op = find_operator(name.c_str());
  if (!op || name != op->name) throw py::value_error("there is no operator " + name);
  return op;
}

py::list argument_names(const std::string &name) {
  const plait_op *op = known_operator(name);
  py::list result;
  for (uint16_t i = 0; i < op->n_args; i++) result.append(plait_arg_at(op, i)->name);
  return result;
}

// The names of the values that a call writes to, by the flags of its arguments.
py::set written_names(const std::string &name, const py::list &args) {
  const plait_op *op = known_operator(name);
  py::set result;
  const auto add = [&](const py::handle &item) {
    if (py::isinstance<py::str>(item)) result.add(item.cast<std::string>().substr(1));
  };
  for (uint16_t i = 0; i < op->n_args && i < args.size(); i++) {
    if (!(plait_arg_at(op, i)->flags & PLAIT_ARG_WRITES)) continue;
    if (py::isinstance<py::list>(args[i]))
      for (const py::handle item : args[i]) add(item);
    else
      add(args[i]);
  }
  return result;
}

// What makes the objects for sizes that Python reads on this thread; none: they are ints.
thread_local PyObject *size_reader;

void *size_number(int64_t n) {
  if (!size_reader) return PyLong_FromLongLong(n);
  return PyObject_CallFunction(size_reader, "L", static_cast<long long>(n));
}

void read_sizes_by(const py::object &reader) {
  PyObject *const before = size_reader;
  size_reader = reader.is_none() ? nullptr : reader.inc_ref().ptr();
  Py_XDECREF(before);
}

[[noreturn]] void raise_file_error(const FileError &e) { throw py::value_error(e.what()); }

py::tuple read_file(const std::string &path) {
  try {
    const TensorFile file(open_file(path));
    py::dict texts, tensors;
    for (const auto &[key, text] : file.texts()) texts[py::str(key)] = text;
    for (const FileEntry &entry : file.entries()) {
      Tensor t;
      unlocked(
          [&](plait_thread *thread) { t = file.read(thread, entry, entry.dtype, entry.shape); });
      tensors[py::str(entry.name)] = wrap(t);
    }
    return py::make_tuple(texts, tensors);
  } catch (const FileError &e) {
    raise_file_error(e);
  }
}

void write_file(const std::string &path, const py::dict &texts, const py::sequence &names,
                const py::sequence &tensors) {
  Texts all_texts;
  for (const auto &[key, text] : texts)
    all_texts.emplace_back(key.cast<std::string>(), text.cast<std::string>());
  const std::vector<Tensor> held = handles(tensors);
  std::vector<NamedTensor> all;
  for (size_t i = 0; i < held.size(); i++) all.push_back({names[i].cast<std::string>(), held[i]});
  try {
    const std::unique_ptr<NewFile> file = create_file(path);
    write_tensors(runtime->thread(), file.get(), all_texts, all);
    file->finish();
  } catch (const FileError &e) {
    raise_file_error(e);
  }
}

py::list shared_memory(const py::sequence &tensors) {
  const std::vector<Tensor> all = handles(tensors);
  py::list result;
  for (size_t i = 0; i < all.size(); i++) {
    size_t first = 0;
    while (all[first]->storage != all[i]->storage) first++;
    const auto distance =
        static_cast<char *>(all[i]->dl.data) - static_cast<char *>(all[first]->dl.data);
    result.append(py::make_tuple(first, distance));
  }
  return result;
}

std::pair<uint64_t, uint64_t> references(const py::object &tensor) {
  const plait_tensor *t = handle_of(tensor);
  const auto count = [](const plait_object &o) {
    return __atomic_load_n(&o.refs, __ATOMIC_ACQUIRE);
  };
  return {count(t->o), count(t->storage->o)};
}

bool has_own_elements(const py::object &tensor) {
  const plait_tensor *t = python->unwrap(tensor.ptr());
  if (!t && PyErr_Occurred()) throw py::error_already_set();
  const plait_engine *e = role<plait_engine>(runtime);
  const uint64_t gradients = e ? uint64_t(1) << e->layer : 0;
  return t && !(t->layers & ~gradients) && !t->slot[2] && !t->slot[3];
}

// The layers that this thread skips, and those that see all of its calls.
py::tuple modes() {
  const plait_thread *thread = runtime->thread();
  return py::make_tuple(thread->excluded, thread->included, int(thread->device.device_type),
                        thread->device.device_id);
}

}  // namespace

PYBIND11_MODULE(_graph, m) {
  m.doc() = "Captures and programs.";
  python = plait_python_import();
  if (!python) throw py::error_already_set();
  if (plait_needs_no_lock(m.ptr()) < 0) throw py::error_already_set();
  runtime = python->runtime;
  plugin = &recorder_plugin;
  is_interrupted = has_raising_signal;
  plait_thread *thread = runtime->thread();
  if (const plait_status s = runtime->attach(thread, plugin); s < 0) raise(thread, s);
  core = static_cast<plait_batched *>(PyCapsule_Import(PLAIT_BATCHED_CAPSULE, 0));
  if (!core) throw py::error_already_set();
  if (core->h.size < sizeof(plait_batched))
    throw py::import_error("plait_graph: a newer plait-core is required");
  __atomic_store_n(&core->note_read, &begin_read, __ATOMIC_RELEASE);
  __atomic_store_n(&core->note_address, &make_waiting_calls, __ATOMIC_RELEASE);
  add_compiler(m, python);
  __atomic_store_n(&core->size_number, &size_number, __ATOMIC_RELEASE);
  py::class_<Guard>(m, "Guard", "Whether a call may run the program of another call.")
      .def(
          py::init(
              [](const py::tuple &tensors, const py::list &kept, const py::list &grads,
                 const py::list &entries) { return Guard(python, tensors, kept, grads, entries); }),
          py::arg("tensors"), py::arg("kept"), py::arg("grads"), py::arg("entries"),
          "Keep the types of arguments and of other tensors, whether tensors have gradients, the "
          "modes of the thread, and values: tuples of a dict, a key and the value there; of a cell "
          "and its value; of a list or dict and its size.")
      .def("holds", &Guard::holds, py::arg("args"),
           "Whether the arguments are tensors of these types, and all else is as it was.")
      .def("run", run_guarded, py::arg("program"), py::arg("args"),
           "Run a program with one result if the guard holds; None if it does not.");
  m.def("shared_memory", shared_memory, py::arg("tensors"),
        "For each tensor, the first one in the same storage, and the bytes between them.");
  m.def("references", references, py::arg("tensor"),
        "How many references there are to a tensor's handle, and to its storage.");
  m.def("has_own_elements", has_own_elements, py::arg("tensor"),
        "Whether it is a dense tensor whose memory has its elements, and no transform sees it.");
  m.def("argument_names", argument_names, py::arg("op"), "The names of an operator's arguments.");
  m.def("written_names", written_names, py::arg("op"), py::arg("args"),
        "The names among a node's arguments to which it writes.");
  m.def("read_sizes_by", read_sizes_by, py::arg("reader"),
        "Let a function give the objects for sizes that Python reads on this thread; None: ints.");
  m.def("has_free_sizes", has_free_sizes, py::arg("text"), "Whether a graph has free sizes.");
  m.def("observe_comparisons", observe_comparisons, py::arg("library"),
        "Let the library of operators tell of comparisons of sizes.");
  m.def("read_file", read_file, py::arg("path"), "The texts and the tensors of a file.");
  m.def("write_file", write_file, py::arg("path"), py::arg("texts"), py::arg("names"),
        py::arg("tensors"), "Write texts and tensors to a file, as a whole or not at all.");
  m.def("modes", modes,
        "Numbers: which layers see the calls of this thread, and its default device.");
  py::class_<Capture>(m, "Capture", "Records the operator calls of this thread.")
      .def(py::init<bool>(), py::arg("is_region") = false)
      .def("start", &Capture::start, "Begin to record; another capture of this thread pauses.")
      .def("select", &Capture::select, py::arg("apart"), py::arg("refused"),
           "Record the decompositions of some operators, and make calls of others an error.")
      .def("keep_copies", &Capture::keep_copies,
           "Keep a copy of what each node makes or writes to, as it is behind the node.")
      .def_property_readonly("copies", &Capture::copies,
                             "Number of the node, name and copy of each.")
      .def("stop", &Capture::stop, "End that.")
      .def("forget_dead", &Capture::forget_dead, "Forget values that nobody else holds.")
      .def("add_regions", &Capture::add_regions, py::arg("begin"), py::arg("regions"),
           py::arg("results"), "Record a node with regions, whose results are there already.")
      .def("note_inner", &Capture::note_inner, py::arg("tensor"),
           "Note a tensor of a region, which must not be used behind it.")
      .def("note_region", &Capture::note_region, py::arg("region"), py::arg("results"),
           "Note what a region made that is still in use, without its results.")
      .def("name_of", &Capture::name_of, py::arg("tensor"),
           "The name of a tensor; one that no recorded call made gets a name.")
      .def("end_arguments", &Capture::end_arguments,
           "What has a name so far are the arguments of the function.")
      .def("find", &Capture::find, py::arg("tensor"), "The name of a tensor, or '' if it has none.")
      .def_property_readonly("nodes", &Capture::nodes, "The nodes, in JSON.")
      .def_property_readonly("size", &Capture::size, "The number of nodes.")
      .def_property_readonly("reads_offsets", &Capture::reads_offsets,
                             "Whether offsets in a call counted from the start of memory.")
      .def_property_readonly("values", &Capture::values, "The types of their results, in JSON.")
      .def_property_readonly("problem", &Capture::problem,
                             "Why the calls are no graph; empty if they are one.")
      .def("follow_sizes", &Capture::follow_sizes, "Note comparisons of sizes by operators.")
      .def_property_readonly("comparisons", &Capture::comparisons,
                             "Comparisons of sizes: 0 to 5 for ==, !=, <, <=, >, >=, and two ints.")
      .def_property_readonly("outside", &Capture::outside,
                             "Name, tensor and description of those that no recorded call made.");
  py::class_<Calls>(m, "Calls", "The operator calls that a function made, which are deferred.")
      .def(py::init<std::string>(), py::arg("name"), "Nothing was called; `name` is for errors.")
      .def("begin", &Calls::begin,
           "Begin to defer calls of this thread; False if they are deferred or recorded already.")
      .def("end", &Calls::end, "Make the calls that wait.")
      .def_property_readonly("size", &Calls::size, "The number of different calls.")
      .def("graphs", &Calls::graphs, "The graphs of calls that ran together, in JSON.");
  m.def(
      "set_fewest_elements",
      [](int64_t n) { return std::exchange(fewest_elements, std::max<int64_t>(n, 1)); },
      py::arg("elements"),
      "Set how many elements a fused block has at least, for tests; return what it was before.");
  py::class_<Running>(m, "Running", "Within it, a capture records the calls of this thread.")
      .def(py::init<py::object, py::object>(), py::arg("capture"), py::arg("reads") = py::none())
      .def("__enter__", &Running::enter)
      .def("__exit__", &Running::exit);
  m.def(
      "current_capture",
      [] {
        return current_capture ? py::reinterpret_borrow<py::object>(current_capture) : py::none();
      },
      "The capture that gets the calls of this thread, or None.");
  py::class_<Program>(m, "Program", "A graph that can run.")
      .def(py::init(&parse<Program>), py::arg("text"),
           "Check the text of a graph and plan its runs.")
      .def("bind", bind<Program>, py::arg("weights"), "Set the tensors that it reads and writes.")
      .def("run", run, py::arg("inputs"), py::arg("observer") = py::none(),
           "Compute the outputs; call the observer behind each node, with its index.")
      .def(
          "value",
          [](const Program &program, const std::string &name) {
            return wrap(program.current(name));
          },
          py::arg("name"), "In an observer: the tensor of a value as it is now, or None.")
      .def("set_number", set_number, py::arg("name"), py::arg("value"),
           "Set the value of a number in the next run.")
      .def_property_readonly("numbers", numbers, "Their values in the next run, by name.")
      .def("memories", &Program::memories,
           "Pairs of a value's name and a number that values in the same memory have in common; -1 "
           "for one whose memory is known only when it runs.")
      .def_property_readonly("device_graph", device_graph,
                             "What a device has recorded of it; '' where none can.")
      .def("shapes", &Program::shapes,
           "Pairs of a value's name and its shape, of those whose shape depends on no values.")
      .def_property_readonly("groups", &Program::groups,
                             "The numbers of the nodes of each group that runs together.")
      .def_property_readonly("register_runs", &Program::register_runs,
                             "Those of them whose values pass to the next in registers, in turn.")
      .def_property_readonly("planned_bytes", &Program::planned_bytes,
                             "Bytes of the memory for values and of that of the threads.")
      .def_property_readonly("inputs", &Program::input_names, "Names.")
      .def_property_readonly("weights", &Program::weight_names, "Names.")
      .def_property_readonly("written", written_weights, "Names of weights that it writes to.")
      .def_property_readonly("outputs", &Program::output_names, "Names.");
  py::class_<SizedProgram>(m, "SizedProgram", "A graph that can run at several sizes.")
      .def(py::init(&parse<SizedProgram>), py::arg("text"),
           "Check the text of a graph, with or without free sizes.")
      .def("bind", bind<SizedProgram>, py::arg("weights"), "Set the tensors that it reads.")
      .def("run", run_sized, py::arg("inputs"), "Compute the outputs.")
      .def_property_readonly(
          "numbers", [](SizedProgram &sized) { return numbers(any_program(sized)); },
          "Their values in the next run, by name.")
      .def_property_readonly("weights", weights_of, "Names of the weights.")
      .def_property_readonly("written", written_of, "Names of weights that it writes to.");
}

}  // namespace plait::graph
