#include "python/compiler.hpp"

#include <plait/compiler.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "program/program.hpp"

namespace py = pybind11;

// A program of the default provider.
struct plait_compiled {
  std::unique_ptr<plait::graph::Program> program;
};

namespace plait::graph {
namespace {

const plait_python *python;

// ---- plait-graph's own programs as a provider

plait_status create(void *, plait_thread *thread, const char *graph, uint64_t nbytes,
                    plait_compiled **result) {
  return border(thread, "graph", [&] {
    auto program = std::make_unique<plait_compiled>();
    program->program = Program::parse(thread, std::string_view(graph, nbytes));
    *result = program.release();
    return PLAIT_OK;
  });
}

plait_status bind(void *, plait_thread *thread, plait_compiled *compiled,
                  plait_tensor *const *weights, uint64_t n) {
  return border(thread, "graph", [&] {
    std::vector<Tensor> all;
    for (uint64_t i = 0; i < n; i++) all.push_back(Tensor::share(weights[i]));
    compiled->program->bind(thread, all);
    return PLAIT_OK;
  });
}

plait_status run(void *, plait_thread *thread, plait_compiled *compiled,
                 plait_tensor *const *inputs, uint64_t n_inputs, plait_tensor **outputs,
                 uint64_t n_outputs) {
  return border(thread, "graph", [&] {
    std::vector<Tensor> results;
    compiled->program->run(thread, inputs, n_inputs, &results);
    for (uint64_t i = 0; i < n_outputs && i < results.size(); i++)
      outputs[i] = results[i].release();
    return PLAIT_OK;
  });
}

Number *number_at(plait_thread *thread, plait_compiled *compiled, uint32_t index) {
  std::vector<Number> &all = compiled->program->numbers();
  if (index < all.size()) return &all[index];
  runtime->raise(thread, PLAIT_INDEX_ERROR, "graph", "there is no number %u; the graph has %zu",
                 index, all.size());
  return nullptr;
}

plait_status number(void *, plait_thread *thread, plait_compiled *compiled, uint32_t index,
                    double *value) {
  const Number *n = number_at(thread, compiled, index);
  if (!n) return PLAIT_INDEX_ERROR;
  *value = n->is_integer ? double(n->integer) : n->real;
  return PLAIT_OK;
}

plait_status set_number(void *, plait_thread *thread, plait_compiled *compiled, uint32_t index,
                        double value) {
  Number *n = number_at(thread, compiled, index);
  if (!n) return PLAIT_INDEX_ERROR;
  if (n->is_integer) n->integer = int64_t(value);
  n->real = value;
  return PLAIT_OK;
}

uint64_t planned_bytes(void *, plait_compiled *compiled) {
  return compiled->program->planned_bytes();
}

void release(void *, plait_compiled *compiled) { delete compiled; }

const plait_compiler own{PLAIT_HEADER(plait_compiler),
                         "plait_graph",
                         nullptr,
                         create,
                         bind,
                         run,
                         number,
                         set_number,
                         planned_bytes,
                         release};
const plait_plugin plugin_of_own{PLAIT_HEADER(plait_plugin),
                                 "plait_graph-programs",
                                 "0.2.0",
                                 PLAIT_PLUGIN_DEFAULT,
                                 nullptr,
                                 nullptr};

// ---- programs of the provider in force

[[noreturn]] void raise(plait_thread *thread, plait_status s) {
  python->raise(thread, s);
  throw py::error_already_set();
}

// Calls a function of the table without the GIL.
template <class F>
void unlocked(F &&f) {
  plait_thread *thread = runtime->thread();
  plait_status s;
  {
    const py::gil_scoped_release release;
    s = f(thread);
  }
  if (s < 0) raise(thread, s);
}

class CompiledProgram {
 public:
  CompiledProgram(const plait_compiler *table, plait_compiled *program, uint64_t n_outputs)
      : table_(table), program_(program), n_outputs_(n_outputs) {}
  CompiledProgram(const CompiledProgram &) = delete;
  CompiledProgram &operator=(const CompiledProgram &) = delete;
  ~CompiledProgram() { table_->release(table_->ctx, program_); }

  void bind(const py::sequence &weights) {
    const std::vector<Tensor> held = handles(weights);
    const std::vector<plait_tensor *> all = pointers(held);
    unlocked([&](plait_thread *thread) {
      const std::lock_guard<std::mutex> lock(calls_);
      return table_->bind(table_->ctx, thread, program_, all.data(), all.size());
    });
  }

  py::list run(const py::sequence &inputs) {
    const std::vector<Tensor> held = handles(inputs);
    const std::vector<plait_tensor *> all = pointers(held);
    std::vector<plait_tensor *> outputs(n_outputs_);
    unlocked([&](plait_thread *thread) {
      const std::lock_guard<std::mutex> lock(calls_);
      return table_->run(table_->ctx, thread, program_, all.data(), all.size(), outputs.data(),
                         n_outputs_);
    });
    const auto missing = std::find(outputs.begin(), outputs.end(), nullptr);
    if (missing != outputs.end()) {
      for (plait_tensor *each : outputs)
        if (each) plait_release(each);
      throw py::value_error("compiler " + name() + ": output " +
                            std::to_string(missing - outputs.begin()) + " is missing");
    }
    py::list result(n_outputs_);
    for (uint64_t i = 0; i < n_outputs_; i++) {
      result[i] = py::reinterpret_steal<py::object>(python->wrap(outputs[i]));
      if (!result[i].ptr()) throw py::error_already_set();
    }
    return result;
  }

  double number(uint32_t index) {
    double value = 0;
    unlocked([&](plait_thread *thread) {
      const std::lock_guard<std::mutex> lock(calls_);
      return table_->number(table_->ctx, thread, program_, index, &value);
    });
    return value;
  }

  void set_number(uint32_t index, double value) {
    unlocked([&](plait_thread *thread) {
      const std::lock_guard<std::mutex> lock(calls_);
      return table_->set_number(table_->ctx, thread, program_, index, value);
    });
  }

  uint64_t planned_bytes() { return table_->planned_bytes(table_->ctx, program_); }
  std::string name() const { return table_->name; }

 private:
  static std::vector<Tensor> handles(const py::sequence &tensors) {
    std::vector<Tensor> result;
    for (const py::handle each : tensors) {
      plait_tensor *t = python->unwrap(each.ptr());
      if (!t && PyErr_Occurred()) throw py::error_already_set();
      if (!t) throw py::type_error("a tensor is required");
      result.push_back(Tensor::share(t));
    }
    return result;
  }
  static std::vector<plait_tensor *> pointers(const std::vector<Tensor> &tensors) {
    std::vector<plait_tensor *> result;
    for (const Tensor &each : tensors) result.push_back(each.get());
    return result;
  }

  const plait_compiler *table_;
  plait_compiled *program_;
  uint64_t n_outputs_;
  std::mutex calls_;
};

// The runtime has checked the header and the name of a table.
void check_table(const plait_compiler *table) {
  if (table->h.size >= sizeof *table && table->create && table->bind && table->run &&
      table->number && table->set_number && table->planned_bytes && table->release)
    return;
  throw py::value_error(std::string("the compiler ") + table->name +
                        " is incomplete: all functions of plait/compiler.h are required");
}

// A program of the provider in force; none if that is our own, or if it declines.
std::unique_ptr<CompiledProgram> compile(const std::string &graph, uint64_t n_outputs) {
  static const plait_role role = runtime->role("compiler", 0);
  const auto *table = PLAIT_ROLE(plait_compiler, role);
  if (!table || table == &own) return nullptr;
  check_table(table);
  plait_compiled *program = nullptr;
  plait_status s = PLAIT_OK;
  unlocked([&](plait_thread *thread) {
    return s = table->create(table->ctx, thread, graph.c_str(), graph.size(), &program);
  });
  if (s == PLAIT_DECLINE || !program) return nullptr;
  return std::make_unique<CompiledProgram>(table, program, n_outputs);
}

}  // namespace

void add_compiler(py::module_ &m, const plait_python *host) {
  python = host;
  plait_thread *thread = runtime->thread();
  plait_status s = runtime->attach(thread, &plugin_of_own);
  if (s >= 0) s = runtime->provide(thread, "compiler", 0, &own.h, &plugin_of_own, nullptr);
  if (s < 0) raise(thread, s);
  py::class_<CompiledProgram>(m, "CompiledProgram", "A program of another compiler.")
      .def("bind", &CompiledProgram::bind, py::arg("weights"),
           "Set the tensors that it reads and writes.")
      .def("run", &CompiledProgram::run, py::arg("inputs"), "Compute the outputs.")
      .def("number", &CompiledProgram::number, py::arg("index"),
           "The value of a number in the next run.")
      .def("set_number", &CompiledProgram::set_number, py::arg("index"), py::arg("value"),
           "Set the value of a number in the next run.")
      .def_property_readonly("planned_bytes", &CompiledProgram::planned_bytes,
                             "Bytes of the values within the program during a run.")
      .def_property_readonly("compiler", &CompiledProgram::name, "The name of its compiler.");
  m.def(
      "compile", compile, py::arg("graph"), py::arg("n_outputs"),
      "A program of the compiler that fills the role; None: plait-graph's own program is to run.");
}

}  // namespace plait::graph
