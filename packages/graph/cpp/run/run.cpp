// The C interface of plait/run.h.
#include <plait/run.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "graph.hpp"
#include "json.hpp"
#include "program/control_flow.hpp"
#include "program/memory_record.hpp"
#include "program/sized_program.hpp"
#include "run/file.hpp"
#include "run/start.hpp"

namespace graph = plait::graph;
using plait::Tensor;

// What `plait_run` is in C.
struct plait_run {
  std::string error, text;  // of the last error; of the graph
  graph::Texts texts;       // others of the file
  std::unique_ptr<graph::SizedProgram> sized;
  graph::Program *program = nullptr;  // of `sized`, for its sizes
  bool has_other_sizes = false;       // since `program` was asked for
  bool draws = false;                 // random numbers
  std::vector<Tensor> inputs, outputs;
  std::vector<bool> is_borrowed;      // by input
  std::vector<plait_tensor *> list;   // of the inputs
  std::vector<Tensor> copies;     // on the host, that `plait_run_get` gave
  std::vector<double> numbers;    // that `plait_run_get` gave
  std::vector<char> saved;        // by `plait_run_save_memory`
};

namespace plait::graph {
namespace {

constexpr char kGraph[] = "plait_graph";  // the key of the graph in the metadata

// An error of a function of the header: a kind and a text.
struct RunError : std::runtime_error {
  RunError(int kind, const std::string &text) : std::runtime_error(text), code(kind) {}
  int code;
};

// Cuts the middle out of a text of an error that shows a list of a file, which may be long.
void shorten(std::string *text) {
  constexpr size_t kept = 400;  // bytes at the begin and at the end
  if (text->size() <= 2 * kept) return;
  const auto whole = [&](size_t at) {  // the next begin of a character in UTF-8
    while (at < text->size() && (static_cast<unsigned char>((*text)[at]) & 0xC0) == 0x80) at++;
    return at;
  };
  const size_t from = whole(kept), to = whole(text->size() - kept);
  text->replace(from, to - from, " ... ");
}

// Runs the body of a function of the header, and keeps the text of its error.
template <class F>
int guarded(plait_run *run, F &&body) noexcept {
  if (!run) return PLAIT_RUN_VALUE_ERROR;
  try {
    try {
      run->error.clear();
      body();
      return PLAIT_RUN_OK;
    } catch (const RunError &error) {
      run->error = error.what();
      return error.code;
    } catch (const Error &error) {
      plait_thread *thread = runtime->thread();
      run->error = thread->error ? thread->error->message : "an error without a text";
      runtime->clear(thread);
      shorten(&run->error);
      return error.status;
    } catch (const std::bad_alloc &) {
      run->error = "out of memory";
      return PLAIT_RUN_MEMORY_ERROR;
    } catch (const std::exception &error) {
      run->error = error.what();
      return PLAIT_RUN_ERROR;
    }
  } catch (const std::bad_alloc &) {  // for a text; one that is short needs none
    run->error = "out of memory";
    return PLAIT_RUN_MEMORY_ERROR;
  }
}

[[noreturn]] void fail(int code, const std::string &text) { throw RunError(code, text); }

const char *describe(int kind) {
  switch (kind) {
    case PLAIT_RUN_INPUT: return "input";
    case PLAIT_RUN_OUTPUT: return "output";
    case PLAIT_RUN_WEIGHT: return "weight";
    case PLAIT_RUN_NUMBER: return "number";
    default: return nullptr;
  }
}

// The number that is the seed of the default generators; no name of a graph has this form.
constexpr char kSeedNumber[] = "generator.seed";
const std::string &seed_name() {
  static const std::string name = kSeedNumber;
  return name;
}

// The numbers of a graph that come before the seed: its own, then its free sizes.
size_t count_numbers(const plait_run &run) {
  return run.program->numbers().size() + run.sized->sizes().size();
}

// Behind the numbers of a graph stand its free sizes, then the seed if it draws random numbers.
const std::string &name_at(const plait_run &run, int kind, size_t i) {
  Program &program = *run.program;
  switch (kind) {
    case PLAIT_RUN_INPUT: return program.input_names()[i];
    case PLAIT_RUN_OUTPUT: return program.output_names()[i];
    case PLAIT_RUN_WEIGHT: return program.weight_names()[i];
    default: {
      const size_t n = program.numbers().size();
      if (i < n) return program.numbers()[i].name;
      return i < count_numbers(run) ? run.sized->sizes()[i - n].name : seed_name();
    }
  }
}

size_t count(const plait_run &run, int kind) {
  const Program &program = *run.program;
  switch (kind) {
    case PLAIT_RUN_INPUT: return program.n_inputs();
    case PLAIT_RUN_OUTPUT: return program.output_names().size();
    case PLAIT_RUN_WEIGHT: return program.n_weights();
    case PLAIT_RUN_NUMBER: return count_numbers(run) + run.draws;
    default: return 0;
  }
}

// Takes the program for the sizes that were set; inputs that it has otherwise are no longer set.
void take_program(plait_run *run) {
  if (!run->has_other_sizes) return;
  run->program = &run->sized->program(runtime->thread());
  run->has_other_sizes = false;
  run->outputs.clear();
  for (size_t i = 0; i < run->inputs.size(); i++) {
    Tensor &input = run->inputs[i];
    const std::vector<int64_t> &shape = run->program->input_type(i).shape;
    if (input && !std::equal(shape.begin(), shape.end(), input.shape())) input = Tensor();
  }
}

// The program of an open handle that has the entry.
Program &program_with(plait_run *run, const char *function, int kind, uint32_t index) {
  if (!run->program) fail(PLAIT_RUN_VALUE_ERROR, std::string(function) + ": no file is open");
  if (!describe(kind))
    fail(PLAIT_RUN_VALUE_ERROR,
         std::string(function) + ": there is no kind " + std::to_string(kind));
  const size_t n = count(*run, kind);
  if (index >= n)
    fail(PLAIT_RUN_INDEX_ERROR, std::string(function) + ": there is no " + describe(kind) + " " +
                                    std::to_string(index) + "; the graph has " + std::to_string(n));
  if (kind != PLAIT_RUN_NUMBER) take_program(run);
  return *run->program;
}

bool is_dense(const TensorType &type) {
  int64_t stride = 1;
  bool dense = true;
  for (size_t i = type.shape.size(); i-- > 0;) {
    if (type.shape[i] == 0) return true;
    dense &= type.shape[i] == 1 || type.strides[i] == stride;
    stride *= type.shape[i];
  }
  return dense;
}

// Bytes of the elements; the parser has checked that they fit.
uint64_t nbytes_of(const TensorType &type) {
  uint64_t n = uint64_t(itemsize(type.dtype));
  for (const int64_t size : type.shape) n *= uint64_t(size);
  return n;
}

std::string describe(const TensorType &type) {
  return std::string(name(type.dtype)) + " of shape " +
         text(type.shape.data(), int64_t(type.shape.size()));
}

bool is_cpu(DLDevice device) { return device.device_type == kDLCPU; }

// A tensor of the type; elements may lie at any distance from one another.
Tensor new_tensor(plait_thread *thread, const TensorType &type) {
  Tensor tensor;
  check(runtime->tensor_new(thread, type.dtype, int32_t(type.shape.size()), type.shape.data(),
                            type.strides.data(), type.device, tensor.out()));
  return tensor;
}

// A dense tensor of the type on bytes of the caller, which nobody writes to.
Tensor borrow(plait_thread *thread, const TensorType &type, const void *data) {
  const DLDevice host{kDLCPU, 0};
  const auto ndim = int32_t(type.shape.size());
  Tensor tensor;
  const uint64_t nbytes = nbytes_of(type);
  if (!nbytes) {
    check(runtime->tensor_new(thread, type.dtype, ndim, type.shape.data(), nullptr, host,
                              tensor.out()));
    return tensor;
  }
  Ref<plait_storage> storage;
  void *bytes = const_cast<void *>(data);
  check(runtime->storage_wrap(thread, bytes, nbytes, host, PLAIT_STORAGE_READONLY, nullptr, nullptr,
                              storage.out()));
  check(runtime->tensor_on(thread, storage.get(), bytes, type.dtype, ndim, type.shape.data(),
                           nullptr, tensor.out()));
  return tensor;
}

void copy_elements(plait_thread *thread, const Tensor &target, const Tensor &source) {
  static const Operator copy(runtime, "copy_");
  copy(thread, target, source, false);
}

// Sets all elements to bytes in C order, which need not be aligned.
void copy_bytes(plait_thread *thread, const Tensor &target, const TensorType &type,
                const void *data) {
  const bool is_direct = is_cpu(type.device) && is_contiguous(target.get());
  Tensor dense;
  if (is_direct)
    dense = target;
  else
    check(runtime->tensor_new(thread, type.dtype, int32_t(type.shape.size()), type.shape.data(),
                              nullptr, DLDevice{kDLCPU, 0}, dense.out()));
  if (const uint64_t nbytes = nbytes_of(type)) std::memcpy(dense.data<char>(), data, nbytes);
  if (is_direct)
    wrote(target.get());
  else
    copy_elements(thread, target, dense);
}

void check_bytes(int kind, const std::string &name, const TensorType &type, const void *data,
                 uint64_t nbytes) {
  const auto refuse = [&](int code, const std::string &text) {
    fail(code, std::string("plait_run_set: the ") + describe(kind) + " " + quote(name) + text);
  };
  if (nbytes != nbytes_of(type))
    refuse(PLAIT_RUN_SHAPE_ERROR, " is " + describe(type) + ", which has " +
                                      std::to_string(nbytes_of(type)) + " bytes; got " +
                                      std::to_string(nbytes));
  if (nbytes && !data) refuse(PLAIT_RUN_VALUE_ERROR, ": `data` must not be NULL");
  if (!same(type.dtype, dtype::bool_)) return;
  const auto *bytes = static_cast<const uint8_t *>(data);
  for (uint64_t i = 0; i < nbytes; i++)
    if (bytes[i] > 1)
      refuse(PLAIT_RUN_VALUE_ERROR,
             " is bool; byte " + std::to_string(i) + " is " + std::to_string(bytes[i]));
}

uint64_t alignment(DType d) { return uint64_t(d.code == kDLComplex ? d.bits / 16 : itemsize(d)); }

void set_input(plait_thread *thread, plait_run *run, uint32_t i, const TensorType &type,
               const void *data, bool borrows) {
  Tensor &input = run->inputs[i];
  if (!borrows) {
    if (!input || run->is_borrowed[i]) input = new_tensor(thread, type);
    copy_bytes(thread, input, type, data);
    run->is_borrowed[i] = false;
    return;
  }
  const auto refuse = [&](const std::string &text) {
    fail(PLAIT_RUN_VALUE_ERROR,
         "plait_run_set: the input " + quote(run->program->input_names()[i]) + text);
  };
  if (!is_cpu(type.device) || !is_dense(type))
    refuse(" is not dense in memory of the host, so it cannot be borrowed");
  if (reinterpret_cast<uintptr_t>(data) % alignment(type.dtype))
    refuse(" is borrowed: `data` must be a multiple of " + std::to_string(alignment(type.dtype)));
  input = borrow(thread, type, data);
  run->is_borrowed[i] = true;
}

// A weight of a file, with the strides and on the device of the graph.
Tensor load_weight(plait_thread *thread, const TensorFile &file, const std::string &name,
                   const TensorType &type, bool maps) {
  const FileEntry *entry = file.find(name);
  if (!entry) fail(PLAIT_RUN_ERROR, "the graph has a weight " + quote(name) + ", the file has not");
  const bool as_is = is_cpu(type.device) && is_dense(type);
  Tensor dense = maps || !as_is ? file.map(thread, *entry, type.dtype, type.shape)
                                : file.read(thread, *entry, type.dtype, type.shape);
  if (as_is) return dense;
  // A file must not ask for more memory than it has bytes.
  __int128 elements = 1, reach = 1;
  for (size_t i = 0; i < type.shape.size(); i++) {
    const int64_t stride = type.strides[i];
    elements *= type.shape[i];
    if (type.shape[i] > 1) reach += __int128(type.shape[i] - 1) * (stride < 0 ? -stride : stride);
  }
  if (reach > elements)
    fail(PLAIT_RUN_ERROR, "the weight " + quote(name) + " has the strides " +
                              text(type.strides.data(), int64_t(type.strides.size())) +
                              ", which leave gaps");
  const Tensor result = new_tensor(thread, type);
  copy_elements(thread, result, dense);
  return result;
}

// Whether the nodes of a checked graph draw random numbers, also in regions.
bool draws(Json graph) {
  for (const Json node : graph.at("nodes").items()) {
    const std::string name(node.at("op").string());
    const plait_op *op = find_operator(name.c_str());
    if (op && op->flags & PLAIT_OP_RANDOM) return true;
    if (const auto regions = node.find("regions"))
      for (const Json region : regions->items())
        if (draws(region)) return true;
  }
  return false;
}

// Names are given to C, where a null character ends them.
void check_names(const plait_run &run) {
  for (const int kind : {PLAIT_RUN_INPUT, PLAIT_RUN_OUTPUT, PLAIT_RUN_WEIGHT, PLAIT_RUN_NUMBER})
    for (size_t i = 0; i < count(run, kind); i++)
      if (name_at(run, kind, i).find('\0') != std::string::npos)
        fail(PLAIT_RUN_ERROR, std::string("the name of the ") + describe(kind) + " " +
                                  quote(name_at(run, kind, i)) + " has a null character");
}

// Whether a text of the file stays true when weights change: plait's own, with digests, do not.
bool stays_true(const std::string &key, const std::string &value) {
  return key != kGraph && key.compare(0, 5, "plait") != 0 && !(key == "format" && value == "plait");
}

void load_file(plait_run *run, std::unique_ptr<ByteSource> source,
               const plait_run_settings &settings) {
  const TensorFile file(std::move(source));
  const std::string *text = file.text(kGraph);
  if (!text)
    fail(PLAIT_RUN_ERROR,
         std::string("the file has no graph: its metadata has no \"") + kGraph + "\"");
  start_runtime(settings.libraries);
  if (settings.threads) set_threads(settings.threads);
  if (settings.memory_limit) set_memory_limit(settings.memory_limit);
  if (text->find("\"cuda") != std::string::npos) load_device("cuda");
  plait_thread *thread = runtime->thread();
  std::unique_ptr<SizedProgram> sized = SizedProgram::parse(thread, *text);
  Program *const program = &sized->program(thread);
  std::vector<Tensor> weights;
  weights.reserve(program->n_weights());
  for (size_t i = 0; i < program->n_weights(); i++)
    weights.push_back(load_weight(thread, file, program->weight_names()[i], program->weight_type(i),
                                  settings.flags & PLAIT_RUN_MAP_WEIGHTS));
  sized->keep_outputs(false);
  sized->bind(thread, weights);
  run->inputs.resize(program->n_inputs());
  run->list.resize(program->n_inputs());
  run->draws = role<plait_rng>(runtime) && draws(JsonDocument::parse(*text).root());
  run->numbers.resize(program->numbers().size() + sized->sizes().size() + run->draws);
  run->is_borrowed.resize(program->n_inputs());
  run->copies.resize(program->n_weights() + program->n_inputs() + program->output_names().size());
  for (const auto &[key, value] : file.texts())
    if (stays_true(key, value)) run->texts.emplace_back(key, value);
  run->text = *text;
  run->sized = std::move(sized);
  run->program = program;
  try {
    check_names(*run);
  } catch (...) {
    run->program = nullptr;
    throw;
  }
}

// The graph with the numbers of the program.
std::string current_text(Program *program, const std::string &graph) {
  const JsonDocument document = JsonDocument::parse(graph);
  std::string out = "{";
  for (const JsonMember member : document.root().members()) {
    if (out.size() > 1) out += ", ";
    write_json(out, member.key);
    out += ": ";
    if (member.key != "numbers") {
      write_json(out, member.value);
      continue;
    }
    out += '[';
    for (const Number &number : program->numbers()) {
      if (out.back() != '[') out += ", ";
      out += "{\"name\": ";
      write_json(out, std::string_view(number.name));
      out += ", \"value\": ";
      if (number.is_integer)
        write_json(out, number.integer);
      else
        write_json(out, number.real);
      out += ", \"step\": ";
      if (number.is_integer)
        write_json(out, number.integer_step);
      else
        write_json(out, number.real_step);
      out += '}';
    }
    out += ']';
  }
  return out + "}";
}

// The tensor of an entry, or none.
Tensor tensor_of(const plait_run &run, int kind, uint32_t i) {
  switch (kind) {
    case PLAIT_RUN_INPUT: return run.inputs[i];
    case PLAIT_RUN_OUTPUT: return i < run.outputs.size() ? run.outputs[i] : Tensor();
    case PLAIT_RUN_WEIGHT: return run.program->weights()[i];
    default: return Tensor();
  }
}

// Numbers are given to C as tensors without dimensions.
const TensorType &number_type() {
  static const TensorType type{dtype::float64, {kDLCPU, 0}, {}, {}};
  return type;
}

const TensorType *type_of(const Program &program, int kind, uint32_t i) {
  switch (kind) {
    case PLAIT_RUN_INPUT: return &program.input_type(i);
    case PLAIT_RUN_OUTPUT: return program.output_type(i);
    case PLAIT_RUN_WEIGHT: return &program.weight_type(i);
    case PLAIT_RUN_NUMBER: return &number_type();
    default: return nullptr;
  }
}

// A tensor in memory of the host; the handle keeps a copy of one of another device.
Tensor on_host(plait_run *run, int kind, uint32_t i, const Tensor &tensor) {
  if (is_cpu(tensor.device())) return tensor;
  size_t slot = i;
  if (kind != PLAIT_RUN_INPUT) slot += run->program->n_inputs();
  if (kind == PLAIT_RUN_OUTPUT) slot += run->program->n_weights();
  Tensor copy;
  check(runtime->host_copy(runtime->thread(), tensor.get(), copy.out()));
  run->copies[slot] = copy;
  return copy;
}

// Begins the streams of a seed, as manual_seed does in Python: that of the CPU, and those of the
// devices where the graph has inputs, weights or outputs.
void set_seed(const plait_run &run, uint64_t seed) {
  const auto *rng = role<plait_rng>(runtime);
  std::vector<plait_generator *> generators{rng->default_generator(rng->ctx)};
  for (const int kind : {PLAIT_RUN_INPUT, PLAIT_RUN_WEIGHT, PLAIT_RUN_OUTPUT})
    for (uint32_t i = 0; i < count(run, kind); i++) {
      const TensorType *type = type_of(*run.program, kind, i);
      if (type && !is_cpu(type->device) && PLAIT_HAS(plait_rng, rng, device_generator))
        generators.push_back(rng->device_generator(rng->ctx, type->device));
    }
  for (plait_generator *g : generators) {
    g->seed = seed;
    __atomic_store_n(&g->offset, 0, __ATOMIC_RELEASE);
    if (PLAIT_HAS(plait_rng, rng, state_size))
      check(rng->set_seed(rng->ctx, runtime->thread(), g, seed));
  }
}

double number_of(const plait_run &run, uint32_t i) {
  if (i >= count_numbers(run)) {
    const auto *rng = role<plait_rng>(runtime);
    return double(rng->default_generator(rng->ctx)->seed);
  }
  const std::vector<Number> &numbers = run.program->numbers();
  if (i >= numbers.size()) return double(run.sized->sizes()[i - numbers.size()].value);
  return numbers[i].is_integer ? double(numbers[i].integer) : numbers[i].real;
}

void set_number(plait_run *run, uint32_t i, double value) {
  std::vector<Number> &numbers = run->program->numbers();
  const auto refuse = [&](const std::string &text) {
    fail(PLAIT_RUN_VALUE_ERROR,
         "plait_run_set: the number " + quote(name_at(*run, PLAIT_RUN_NUMBER, i)) + text);
  };
  if (!(value > -1.7e308 && value < 1.7e308)) refuse(" must be finite");
  const bool is_size = i >= numbers.size(), is_seed = i >= count_numbers(*run);
  const auto whole = value > -9e18 && value < 9e18 ? int64_t(value) : 0;
  if ((is_size || numbers[i].is_integer) && double(whole) != value)
    refuse(" is an integer, got " + std::to_string(value));
  if (is_seed) {
    if (whole < 0) refuse(" must not be negative, got " + std::to_string(whole));
    return set_seed(*run, uint64_t(whole));
  }
  if (is_size) {
    run->sized->set_size(runtime->thread(), i - numbers.size(), whole);
    run->has_other_sizes = true;
    return;
  }
  numbers[i].integer = numbers[i].is_integer ? whole : 0;
  numbers[i].real = value;
}

void describe_tensor(plait_run *run, int kind, uint32_t i, plait_run_tensor *out) {
  Program &program = program_with(run, "plait_run_get", kind, i);
  if (!out || out->size < sizeof *out)
    fail(PLAIT_RUN_VALUE_ERROR, "plait_run_get: `size` of the tensor must be set to its sizeof");
  plait_run_tensor result{};
  result.size = out->size;
  result.name = name_at(*run, kind, i).c_str();
  result.ndim = -1;
  if (kind == PLAIT_RUN_NUMBER) {
    run->numbers[i] = number_of(*run, i);
    result.dtype = name(number_type().dtype);
    result.ndim = 0;
    result.data = &run->numbers[i];
    result.nbytes = result.item_size = sizeof run->numbers[i];
  } else if (const Tensor tensor = tensor_of(*run, kind, i)) {
    const Tensor host = on_host(run, kind, i, tensor);
    result.dtype = name(host.dtype());
    result.ndim = host.ndim();
    result.shape = host.shape();
    result.strides = host.get()->dl.strides;
    result.data = host.data<void>();
    result.item_size = uint32_t(itemsize(host.dtype()));
    result.nbytes = uint64_t(host.numel()) * result.item_size;
  } else if (const TensorType *type = type_of(program, kind, i)) {
    result.dtype = name(type->dtype);
    result.ndim = int32_t(type->shape.size());
    result.shape = type->shape.data();
    result.strides = type->strides.data();
    result.item_size = uint32_t(itemsize(type->dtype));
    result.nbytes = nbytes_of(*type);
  }
  *out = result;
}

// Refuses the first run if it needs more memory than the limit leaves. Kernels are measured if the
// tensors fit.
void check_memory(plait_run *run) {
  Program &program = *run->program;
  const uint64_t most = memory_limit();
  if (!most || program.has_run()) return;
  uint64_t there = 0;  // weights and inputs
  for (const Tensor &t : program.weights()) there += t.get()->storage->nbytes;
  for (const Tensor &t : run->inputs) there += t.get()->storage->nbytes;
  const auto refuse = [&](uint64_t bytes) {
    const uint64_t more = bytes - std::min(bytes, there), used = used_memory();
    if (more > most || used > most - more)
      fail(PLAIT_RUN_MEMORY_ERROR, "plait_run_execute: it needs " + std::to_string(more) +
                                       " bytes beside weights and inputs; the memory limit is " +
                                       std::to_string(most) + " bytes, of which " +
                                       std::to_string(used) + " are in use");
  };
  refuse(program.tensor_bytes());
  refuse(program.tensor_bytes() + program.kernel_bytes(runtime->thread()));
}

// Opens a handle for the file that `source` returns.
template <class F>
int open_with(const char *function, const plait_run_settings *settings, plait_run **result,
              F &&source) {
  if (!result) return PLAIT_RUN_VALUE_ERROR;
  auto *run = *result = new (std::nothrow) plait_run;
  if (!run) return PLAIT_RUN_MEMORY_ERROR;
  return guarded(run, [&] {
    plait_run_settings all{};
    if (settings && settings->size < sizeof all)
      fail(PLAIT_RUN_VALUE_ERROR,
           std::string(function) + ": `size` of the settings must be their sizeof");
    if (settings) all = *settings;
    if (all.flags & ~uint32_t(PLAIT_RUN_MAP_WEIGHTS))
      fail(PLAIT_RUN_VALUE_ERROR, std::string(function) + ": the settings have an unknown flag");
    load_file(run, source(), all);
  });
}

// Writes the file of a handle as it is now.
void write_file(plait_run *run, ByteSink *sink) {
  Texts texts = run->texts;
  texts.emplace_back(kGraph, current_text(run->program, run->text));
  std::vector<NamedTensor> weights;
  for (size_t i = 0; i < run->program->n_weights(); i++)
    weights.push_back({run->program->weight_names()[i], run->program->weights()[i]});
  write_tensors(runtime->thread(), sink, texts, weights);
}

}  // namespace
}  // namespace plait::graph

using namespace plait::graph;

extern "C" {

int plait_run_open(const char *path, const plait_run_settings *settings, plait_run **result) {
  const int code = open_with("plait_run_open", settings, result, [&] {
    if (!path) fail(PLAIT_RUN_VALUE_ERROR, "plait_run_open: `path` must not be NULL");
    return open_file(path);
  });
  if (code == PLAIT_RUN_OK || !path || !result || !*result) return code;
  std::string &error = (*result)->error;
  if (error.compare(0, std::strlen(path), path) == 0) return code;
  try {
    error = std::string(path) + ": " + error;
  } catch (const std::bad_alloc &) {  // the text stays as it is
  }
  return code;
}

int plait_run_open_memory(const void *data, uint64_t nbytes, const plait_run_settings *settings,
                          plait_run **result) {
  return open_with("plait_run_open_memory", settings, result, [&] {
    if (!data) fail(PLAIT_RUN_VALUE_ERROR, "plait_run_open_memory: `data` must not be NULL");
    return open_memory(data, nbytes);
  });
}

void plait_run_close(plait_run *run) { delete run; }

const char *plait_run_error(const plait_run *run) {
  return run ? run->error.c_str() : "out of memory, or no handle";
}

uint32_t plait_run_count(const plait_run *run, int kind) {
  return run && run->program ? uint32_t(count(*run, kind)) : 0;
}

int plait_run_find(const plait_run *run, int kind, const char *name) {
  const uint32_t n = name ? plait_run_count(run, kind) : 0;
  for (uint32_t i = 0; i < n; i++)
    if (name_at(*run, kind, i) == name) return int(i);
  return -1;
}

int plait_run_get(plait_run *run, int kind, uint32_t index, plait_run_tensor *tensor) {
  return guarded(run, [&] { describe_tensor(run, kind, index, tensor); });
}

int plait_run_set(plait_run *run, int kind, uint32_t index, const void *data, uint64_t nbytes,
                  uint32_t flags) {
  return guarded(run, [&] {
    program_with(run, "plait_run_set", kind, index);
    if (kind == PLAIT_RUN_OUTPUT)
      fail(PLAIT_RUN_VALUE_ERROR, "plait_run_set: an output cannot be set");
    const bool borrows = flags & PLAIT_RUN_BORROW;
    if (flags & ~uint32_t(PLAIT_RUN_BORROW) || (borrows && kind != PLAIT_RUN_INPUT))
      fail(PLAIT_RUN_VALUE_ERROR,
           "plait_run_set: unknown flags, or a weight or number that is borrowed");
    plait_thread *thread = runtime->thread();
    if (kind == PLAIT_RUN_INPUT && nbytes != nbytes_of(run->program->input_type(index)) &&
        run->sized->fit_input(thread, index, nbytes)) {
      run->has_other_sizes = true;
      take_program(run);
    }
    Program &program = *run->program;
    const TensorType &type = *type_of(program, kind, index);
    check_bytes(kind, name_at(*run, kind, index), type, data, nbytes);
    if (kind == PLAIT_RUN_NUMBER) {
      double value;
      std::memcpy(&value, data, sizeof value);
      set_number(run, index, value);
    } else if (kind == PLAIT_RUN_INPUT)
      set_input(thread, run, index, type, data, borrows);
    else
      copy_bytes(thread, program.weights()[index], type, data);
  });
}

int plait_run_execute(plait_run *run) {
  return guarded(run, [&] {
    if (!run->program) fail(PLAIT_RUN_VALUE_ERROR, "plait_run_execute: no file is open");
    take_program(run);
    for (size_t i = 0; i < run->inputs.size(); i++) {
      run->list[i] = run->inputs[i].get();
      if (!run->list[i])
        fail(PLAIT_RUN_VALUE_ERROR, "plait_run_execute: the input " +
                                        quote(run->program->input_names()[i]) + " was not set");
    }
    check_memory(run);
    try {
      run->program->run(runtime->thread(), run->list.data(), run->list.size(), &run->outputs);
    } catch (...) {
      run->outputs.clear();
      throw;
    }
  });
}

int plait_run_save(plait_run *run, const char *path) {
  return guarded(run, [&] {
    if (!run->program || !path)
      fail(PLAIT_RUN_VALUE_ERROR, run->program ? "plait_run_save: `path` must not be NULL"
                                               : "plait_run_save: no file is open");
    const std::unique_ptr<NewFile> file = create_file(path);
    write_file(run, file.get());
    file->finish();
  });
}

int plait_run_save_memory(plait_run *run, const void **data, uint64_t *nbytes) {
  return guarded(run, [&] {
    if (!run->program) fail(PLAIT_RUN_VALUE_ERROR, "plait_run_save_memory: no file is open");
    if (!data || !nbytes)
      fail(PLAIT_RUN_VALUE_ERROR, "plait_run_save_memory: `data` and `nbytes` must not be NULL");
    MemorySink sink;
    write_file(run, &sink);
    run->saved = std::move(sink.bytes);
    *data = run->saved.data();
    *nbytes = run->saved.size();
  });
}

uint64_t plait_run_memory(const plait_run *run) {
  if (!run || !run->program) return 0;
  auto *const changed = const_cast<plait_run *>(run);
  uint64_t nbytes = 0;
  guarded(changed, [&] {
    take_program(changed);
    nbytes = run->sized->tensor_bytes();
    // kernels are called to be measured, which tensors beyond the limit forbid
    const uint64_t most = memory_limit();
    if (!most || nbytes <= most) nbytes += run->program->kernel_bytes(runtime->thread());
  });
  return nbytes;
}

}  // extern "C"
