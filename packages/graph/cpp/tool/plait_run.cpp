// plait-run: describes, runs and trains a saved graph from the command line.
#include <plait/run.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "tool/npy.hpp"

namespace {

constexpr char kUsage[] =
    "usage: plait-run FILE [INPUT.npy ...] [options]\n"
    "\n"
    "Runs a graph that plait saved. Without inputs, for a graph that has some, it describes the\n"
    "graph. Inputs are in the order of the graph, or NAME=INPUT.npy.\n"
    "\n"
    "  -o FILE.npy      write the next output to a file; others are printed\n"
    "  -n COUNT         run that many times, and print the median time of a run\n"
    "  --number N=VALUE set a number, such as a learning rate, or a free size\n"
    "  --weight N=FILE  set a weight from a .npy file\n"
    "  --save FILE      write the graph with the weights after the last run\n"
    "  --threads COUNT  threads of the process\n"
    "  --memory BYTES   limit of the memory of tensors\n"
    "  --map            read weights from the file when they are used\n"
    "  --libraries DIRS folders with the libraries of plait, separated by colons\n";

struct Options {
  std::string file, save, libraries;
  std::vector<std::string> inputs, outputs, numbers, weights;
  uint64_t count = 1, memory = 0, threads = 0;
  bool is_timed = false, maps = false;
};

uint64_t whole(const std::string &option, const std::string &text) {
  char *end = nullptr;
  errno = 0;
  const unsigned long long n = std::strtoull(text.c_str(), &end, 10);
  if (text.empty() || *end || errno || text[0] == '-')
    throw std::runtime_error(option + ": a whole number is required, got " + text);
  return n;
}

// NAME=VALUE; the name is empty where there is none.
std::pair<std::string, std::string> split(const std::string &text) {
  const size_t at = text.find('=');
  if (at == std::string::npos) return {"", text};
  return {text.substr(0, at), text.substr(at + 1)};
}

Options parse(int argc, char **argv) {
  Options o;
  for (int i = 1; i < argc; i++) {
    const std::string word = argv[i];
    if (word.size() < 2 || word[0] != '-') {
      if (o.file.empty())
        o.file = word;
      else
        o.inputs.push_back(word);
      continue;
    }
    if (word == "-h" || word == "--help") {
      std::fputs(kUsage, stdout);
      std::exit(0);
    }
    if (word == "--map") {
      o.maps = true;
      continue;
    }
    if (i + 1 == argc) throw std::runtime_error(word + ": a value is required");
    const std::string value = argv[++i];
    if (word == "-o")
      o.outputs.push_back(value);
    else if (word == "-n")
      o.count = whole(word, value), o.is_timed = true;
    else if (word == "--number")
      o.numbers.push_back(value);
    else if (word == "--weight")
      o.weights.push_back(value);
    else if (word == "--save")
      o.save = value;
    else if (word == "--threads")
      o.threads = whole(word, value);
    else if (word == "--memory")
      o.memory = whole(word, value);
    else if (word == "--libraries")
      o.libraries = value;
    else
      throw std::runtime_error("unknown option " + word);
  }
  if (o.file.empty()) throw std::runtime_error("a file is required");
  return o;
}

class Run {
 public:
  explicit Run(const Options &o) {
    plait_run_settings settings{};
    settings.size = sizeof settings;
    settings.libraries = o.libraries.empty() ? nullptr : o.libraries.c_str();
    settings.memory_limit = o.memory;
    settings.threads = uint32_t(o.threads);
    settings.flags = o.maps ? uint32_t(PLAIT_RUN_MAP_WEIGHTS) : 0;
    const int code = plait_run_open(o.file.c_str(), &settings, &run_);
    if (code == PLAIT_RUN_OK) return;
    const std::string text = plait_run_error(run_);
    plait_run_close(run_);
    throw std::runtime_error(text);
  }
  Run(const Run &) = delete;
  Run &operator=(const Run &) = delete;
  ~Run() { plait_run_close(run_); }

  void check(int code) const {
    if (code < 0) throw std::runtime_error(plait_run_error(run_));
  }
  plait_run *get() const { return run_; }
  uint32_t count(int kind) const { return plait_run_count(run_, kind); }
  plait_run_tensor at(int kind, uint32_t i) const {
    plait_run_tensor t{};
    t.size = sizeof t;
    check(plait_run_get(run_, kind, i, &t));
    return t;
  }
  uint32_t find(int kind, const char *what, const std::string &name) const {
    const int i = plait_run_find(run_, kind, name.c_str());
    if (i < 0) throw std::runtime_error(std::string("the graph has no ") + what + " " + name);
    return uint32_t(i);
  }

 private:
  plait_run *run_ = nullptr;
};

std::string shape_text(const std::vector<int64_t> &shape) {
  std::string text = "[";
  for (const int64_t n : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(n);
  return text + "]";
}
std::vector<int64_t> shape_of(const plait_run_tensor &t) {
  return t.ndim < 0 ? std::vector<int64_t>() : std::vector<int64_t>(t.shape, t.shape + t.ndim);
}
std::string type_text(const plait_run_tensor &t) {
  if (t.ndim < 0) return "of a shape that depends on values";
  return std::string(t.dtype) + shape_text(shape_of(t));
}

void describe(const Run &run) {
  const struct {
    int kind;
    const char *name;
  } kinds[] = {{PLAIT_RUN_INPUT, "input"}, {PLAIT_RUN_OUTPUT, "output"}};
  for (const auto &[kind, name] : kinds)
    for (uint32_t i = 0; i < run.count(kind); i++) {
      const plait_run_tensor t = run.at(kind, i);
      std::printf("%s %s: %s\n", name, t.name, type_text(t).c_str());
    }
  for (uint32_t i = 0; i < run.count(PLAIT_RUN_NUMBER); i++) {
    const plait_run_tensor t = run.at(PLAIT_RUN_NUMBER, i);
    std::printf("number %s: %g\n", t.name, *static_cast<const double *>(t.data));
  }
  uint64_t nbytes = 0;
  for (uint32_t i = 0; i < run.count(PLAIT_RUN_WEIGHT); i++)
    nbytes += run.at(PLAIT_RUN_WEIGHT, i).nbytes;
  std::printf("%u weights: %llu bytes; all tensors of a run: at most %llu bytes\n",
              run.count(PLAIT_RUN_WEIGHT), static_cast<unsigned long long>(nbytes),
              static_cast<unsigned long long>(plait_run_memory(run.get())));
}

// Sets the free sizes that are dimensions of an input to those of an array, as far as it is
// possible. Other numbers, which are not tried, have names with a point: those of optimizers and
// the seed.
void fit_sizes(const Run &run, uint32_t input, const std::vector<int64_t> &shape) {
  const auto fits = [&](size_t dim) {
    const std::vector<int64_t> own = shape_of(run.at(PLAIT_RUN_INPUT, input));
    return own.size() != shape.size() || own[dim] == shape[dim];
  };
  for (size_t dim = 0; dim < shape.size(); dim++)
    for (uint32_t i = 0; i < run.count(PLAIT_RUN_NUMBER) && !fits(dim); i++) {
      const plait_run_tensor number = run.at(PLAIT_RUN_NUMBER, i);
      if (std::strchr(number.name, '.')) continue;
      const double before = *static_cast<const double *>(number.data), size = double(shape[dim]);
      const auto try_value = [&](double value) {
        return plait_run_set(run.get(), PLAIT_RUN_NUMBER, i, &value, sizeof value, 0) >= 0;
      };
      if (try_value(size) && !fits(dim)) try_value(before);
    }
}

void set(const Run &run, int kind, uint32_t i, const std::string &path, const Array &array) {
  const plait_run_tensor t = run.at(kind, i);
  const std::string expected = std::string(t.name) + " is " + type_text(t);
  const auto refuse = [&](const std::string &reason) {
    throw std::runtime_error(path + " is " + array.dtype + shape_text(array.shape) + "; " +
                             expected + reason);
  };
  if (array.dtype != t.dtype || array.shape.size() != shape_of(t).size()) refuse("");
  const bool fits = array.shape == shape_of(t);  // otherwise a size may be free
  if (!fits && array.bytes.size() == t.nbytes) refuse("");
  const int code = plait_run_set(run.get(), kind, i, array.bytes.data(), array.bytes.size(), 0);
  if (!fits && code < 0) refuse(std::string(" (") + plait_run_error(run.get()) + ")");
  run.check(code);
  if (array.shape != shape_of(run.at(kind, i))) refuse("");
}

void set_inputs(const Run &run, const std::vector<std::string> &words) {
  struct Given {
    uint32_t input;
    std::string path;
    Array array;
  };
  std::vector<Given> given;
  uint32_t next = 0;
  for (const std::string &each : words) {
    const auto [name, path] = split(each);
    const uint32_t i = name.empty() ? next++ : run.find(PLAIT_RUN_INPUT, "input", name);
    given.push_back({i, path, read_npy(path)});
  }
  for (const Given &each : given)  // all before the first is set, as another size unsets inputs
    if (each.input < run.count(PLAIT_RUN_INPUT)) fit_sizes(run, each.input, each.array.shape);
  for (const Given &each : given) set(run, PLAIT_RUN_INPUT, each.input, each.path, each.array);
}

// The elements in C order.
std::string dense_bytes(const plait_run_tensor &t) {
  std::string bytes;
  if (!t.nbytes) return bytes;
  bytes.reserve(t.nbytes);
  std::vector<int64_t> index(size_t(t.ndim), 0);
  const auto *data = static_cast<const char *>(t.data);
  for (;;) {
    int64_t offset = 0;
    for (int i = 0; i < t.ndim; i++) offset += index[size_t(i)] * t.strides[i];
    bytes.append(data + offset * int64_t(t.item_size), t.item_size);
    int i = t.ndim - 1;
    for (; i >= 0 && ++index[size_t(i)] == t.shape[i]; i--) index[size_t(i)] = 0;
    if (i < 0) return bytes;
  }
}

template <class T>
void print_numbers(const std::string &bytes, const char *format) {
  constexpr size_t most = 16;
  const size_t n = bytes.size() / sizeof(T);
  for (size_t i = 0; i < n && i < most; i++) {
    T x;
    std::memcpy(&x, bytes.data() + i * sizeof x, sizeof x);
    std::printf(format, x);
  }
  std::printf(n > most ? " ...\n" : "\n");
}

void print(const plait_run_tensor &t) {
  std::printf("%s: %s", t.name, type_text(t).c_str());
  const std::string bytes = dense_bytes(t), dtype = t.dtype;
  if (dtype == "float32") {
    std::printf(" =");
    print_numbers<float>(bytes, " %g");
  } else if (dtype == "float64") {
    std::printf(" =");
    print_numbers<double>(bytes, " %g");
  } else if (dtype == "int64") {
    std::printf(" =");
    print_numbers<long long>(bytes, " %lld");
  } else if (dtype == "int32") {
    std::printf(" =");
    print_numbers<int>(bytes, " %d");
  } else if (dtype == "bool") {
    std::printf(" =");
    print_numbers<bool>(bytes, " %d");
  } else {
    std::printf("\n");
  }
}

void execute(const Run &run, const Options &o) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> times;
  for (uint64_t i = 0; i < o.count; i++) {
    const auto begin = Clock::now();
    run.check(plait_run_execute(run.get()));
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
  }
  if (!o.is_timed || times.empty()) return;
  const auto middle = times.begin() + std::ptrdiff_t(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  std::printf("%llu runs, median %.2f microseconds\n", static_cast<unsigned long long>(o.count),
              *middle);
}

void work(const Options &o) {
  const Run run(o);
  for (const std::string &each : o.numbers) {
    const auto [name, text] = split(each);
    char *end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (name.empty() || text.empty() || *end)
      throw std::runtime_error("--number: NAME=VALUE is required, got " + each);
    const uint32_t i = run.find(PLAIT_RUN_NUMBER, "number", name);
    run.check(plait_run_set(run.get(), PLAIT_RUN_NUMBER, i, &value, sizeof value, 0));
  }
  for (const std::string &each : o.weights) {
    const auto [name, path] = split(each);
    set(run, PLAIT_RUN_WEIGHT, run.find(PLAIT_RUN_WEIGHT, "weight", name), path, read_npy(path));
  }
  if (o.inputs.empty() && run.count(PLAIT_RUN_INPUT)) {
    if (o.save.empty() && o.outputs.empty()) return describe(run);
  } else {
    set_inputs(run, o.inputs);
    execute(run, o);
    for (uint32_t i = 0; i < run.count(PLAIT_RUN_OUTPUT); i++) {
      const plait_run_tensor t = run.at(PLAIT_RUN_OUTPUT, i);
      if (i < o.outputs.size())
        write_npy(o.outputs[i], t.dtype, shape_of(t), dense_bytes(t));
      else
        print(t);
    }
  }
  if (!o.save.empty()) run.check(plait_run_save(run.get(), o.save.c_str()));
}

}  // namespace

int main(int argc, char **argv) {
  try {
    work(parse(argc, argv));
    return 0;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "plait-run: %s\n", error.what());
    return 1;
  }
}
