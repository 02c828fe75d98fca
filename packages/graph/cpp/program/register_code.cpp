// Which calls of a group become register code, and how a block of them runs.
#include "program/register_code.hpp"

#include <algorithm>
#include <cstring>

#include "program/program.hpp"

namespace plait::graph {

namespace {

// Rows of fewer elements run call by call.
constexpr int64_t fewest_in_row = 128;
// Values of so many bytes are in no cache when another node reads them.
constexpr int64_t streamed_bytes = 32 << 20;

// The operation that an operator is, or `count`. The first argument is x, the second one is y.
Operation operation_of(const char *name) {
  size_t o = 0;
  for (; o < size_t(Operation::count); o++)
    if (const char *each = operator_of(Operation(o)); each && !std::strcmp(each, name)) break;
  return Operation(o);
}

bool is_number(const plait_value &v) { return v.tag == PLAIT_FLOAT || v.tag == PLAIT_INT; }
double real(const plait_value &v) { return v.tag == PLAIT_FLOAT ? v.u.f : double(v.u.i); }

bool is_float(DLDataType t) { return t.code == kDLFloat && (t.bits == 32 || t.bits == 64); }

}  // namespace

// Finds the calls that register code can do, and writes the code of those that follow each other.
class Program::RegisterCoder {
 public:
  RegisterCoder(const Program &program, Group *group) : p_(program), g_(*group) {}

  void code() {
    const size_t n = g_.calls.size();
    for (size_t k = 0; k < n;) {
      const DLDataType dtype = dtype_of(g_.calls[k].out);
      size_t end = k;
      while (end < n && end - k < most_calls && is_coded(g_.calls[end], dtype)) end++;
      if (end - k > 1) g_.runs.push_back(write(k, end, dtype.bits == 64));
      k = std::max(end, k + 1);
    }
  }

 private:
  // Where compilers make no jumps of calls, each instruction needs some of the stack.
  static constexpr size_t most_calls = 64;

  struct Source {  // of an argument: a tensor, or a number
    int32_t operand = -1;
    double number = 0;
  };
  struct Act {
    Operation operation;
    Source y;
  };
  struct Description {  // of a call: what is done with x, one after the other
    Source x;
    std::vector<Act> acts;
  };

  DLDataType dtype_of(int32_t operand) const {
    return p_.values_[size_t(g_.operands[size_t(operand)].value)].type.dtype;
  }
  int64_t stride_of(int32_t operand) const { return g_.block_strides[size_t(operand)].back(); }

  bool describe(const Group::Call &call, Description *d) const {
    const std::vector<plait_value> &in = p_.nodes_[size_t(call.node)].in;
    const char *name = call.op->name;
    const auto source = [&](size_t a, Source *to) {
      for (const auto &[argument, o] : call.in)
        if (argument == a) return to->operand = o, true;
      if (!is_number(in[a])) return false;
      to->number = real(in[a]);
      return true;
    };
    if (!source(0, &d->x)) return false;
    const auto bounds = [&](Operation low, Operation high) {
      d->acts = {{low, {}}, {high, {}}};
      return source(1, &d->acts[0].y) && source(2, &d->acts[1].y);
    };
    if (!std::strcmp(name, "clamp_between"))
      return bounds(Operation::clamp_min, Operation::clamp_max);
    if (!std::strcmp(name, "hardtanh"))
      return bounds(Operation::lower_bound, Operation::upper_bound);
    if (!std::strcmp(name, "relu6")) {
      d->acts = {{Operation::lower_bound, {-1, 0}}, {Operation::upper_bound, {-1, 6}}};
      return true;
    }
    const Operation operation = operation_of(name);
    if (operation == Operation::count) return false;
    d->acts = {{operation, {}}};
    if (operation < Operation::add) return true;
    if (operation == Operation::add || operation == Operation::sub)
      if (!is_number(in[2]) || real(in[2]) != 1) return false;
    return source(1, &d->acts[0].y);
  }

  bool is_coded(const Group::Call &call, DLDataType dtype) const {
    Description d;
    if (!is_float(dtype) || !describe(call, &d)) return false;
    const int64_t length = g_.cut + 1 == int64_t(g_.sizes.size()) ? g_.rows : g_.sizes.back();
    if (length < std::min(fewest_in_row, fewest_elements)) return false;
    if (!same(dtype_of(call.out), dtype) || stride_of(call.out) != 1) return false;
    return std::all_of(call.in.begin(), call.in.end(), [&](const auto &in) {
      const int64_t stride = stride_of(in.second);
      return same(dtype_of(in.second), dtype) && (stride == 0 || stride == 1);
    });
  }

  static size_t uses(const Group::Call &call, int32_t operand) {
    size_t n = 0;
    for (const auto &in : call.in) n += in.second == operand;
    return n;
  }

  // Whether the call can take the operand from the accumulator, and needs it nowhere else.
  bool takes(const Group::Call &call, int32_t operand) const {
    if (uses(call, operand) != 1) return false;
    Description d;
    return describe(call, &d) && (d.x.operand == operand || d.acts.size() == 1);
  }

  // How the result of call k must be stored, for what follows it.
  Operation storing(size_t k, size_t end) const {
    const int32_t out = g_.calls[k].out;
    const bool has_memory = g_.operands[size_t(out)].place < 0;
    for (size_t j = k + 1; j < g_.calls.size(); j++) {
      const Group::Call &call = g_.calls[j];
      if (uses(call, out) && !(j == k + 1 && j < end && takes(call, out))) return Operation::store;
      if (call.out == out) return j < end || !has_memory ? Operation::load : Operation::store;
    }
    if (!has_memory) return Operation::load;  // none
    const Value &v = p_.values_[size_t(g_.operands[size_t(out)].value)];
    const bool is_large = int64_t(p_.memories_[size_t(v.memory)].nbytes) >= streamed_bytes;
    return is_large && g_.sizes.size() == 1 ? Operation::stream : Operation::store;
  }

  Group::Part part(Operation operation, bool is_first, Source y, bool is_double) const {
    const bool has_operand = operation <= Operation::stream || operation >= Operation::add;
    const bool is_one = has_operand && (y.operand < 0 || stride_of(y.operand) == 0);
    const Form form = is_first ? (is_one ? Form::one_first : Form::elements_first)
                               : (is_one ? Form::one : Form::elements);
    Group::Part result{operation, form, y.operand, {}};
    const float number = float(y.number);
    is_double ? std::memcpy(result.number, &y.number, sizeof y.number)
              : std::memcpy(result.number, &number, sizeof number);
    return result;
  }

  Group::Run write(size_t begin, size_t end, bool is_double) const {
    Group::Run run{begin, end, is_double, {}, nullptr};
    int32_t held = -1;  // the operand that the accumulator has
    for (size_t k = begin; k < end; k++) {
      Description d;
      describe(g_.calls[k], &d);
      const bool holds_x = held >= 0 && d.x.operand == held;
      const bool holds_y = held >= 0 && d.acts.size() == 1 && d.acts[0].y.operand == held &&
                           d.acts[0].operation >= Operation::add;
      if (!holds_x && holds_y) {
        run.parts.push_back(part(d.acts[0].operation, true, d.x, is_double));
      } else {
        if (!holds_x) run.parts.push_back(part(Operation::load, false, d.x, is_double));
        for (const Act &act : d.acts)
          run.parts.push_back(part(act.operation, false, act.y, is_double));
      }
      held = g_.calls[k].out;
      const Operation store = storing(k, end);
      if (store != Operation::load) run.parts.push_back(part(store, false, {held, 0}, is_double));
    }
    return run;
  }

  const Program &p_;
  Group &g_;
};

void Program::code_group(Group *g) const { RegisterCoder(*this, g).code(); }

std::vector<std::vector<int32_t>> Program::register_runs() const {
  std::vector<std::vector<int32_t>> result;
  for (const Group &g : groups_)
    for (const Group::Run &run : g.runs) {
      result.emplace_back();
      for (size_t k = run.begin; k < run.end; k++) result.back().push_back(g.calls[k].node);
    }
  return result;
}

namespace {

// The table for a kernel of the library of processors with AVX2, or of another one. NULL: another
// plug-in has a kernel, whose numbers may be others.
const StepTables *tables_of(const plait_entry *kernel) {
  const char *name = kernel && kernel->who ? kernel->who->name : "";
  if (std::strncmp(name, "plait_cpu_", 10)) return nullptr;
#if defined(__x86_64__)
  if constexpr (kSelectsAvx2)
    if (!std::strcmp(name, "plait_cpu_avx2")) return &avx2_steps();
#endif
  if constexpr (kSelectsBase) return &base_steps();
  return nullptr;
}

bool has_elements(const Group::Part &part) {
  return part.form == Form::elements || part.form == Form::elements_first;
}
bool is_store(const Group::Part &part) {
  return part.operation == Operation::store || part.operation == Operation::stream;
}

}  // namespace

void Group::bind_runs() {
  for (Run &run : runs) {
    const StepTables *tables = tables_of(calls[run.begin].kernel);
    for (size_t k = run.begin; k < run.end; k++)
      if (tables_of(calls[k].kernel) != tables) tables = nullptr;
    run.table = tables ? run.is_double ? &tables->doubles : &tables->floats : nullptr;
    for (const Part &part : run.parts)
      if (run.table && !run.table->steps[size_t(part.operation)][size_t(part.form)])
        run.table = nullptr;
  }
  for (Worker &worker : workers) {
    worker.codes.assign(runs.size(), {});
    worker.tails.resize(operands.size());
    for (size_t r = 0; r < runs.size(); r++) {
      if (!runs[r].table) continue;
      for (const Part &part : runs[r].parts)
        worker.codes[r].push_back({nullptr, nullptr, has_elements(part) ? -1 : 0});
      worker.codes[r].push_back({runs[r].table->end, nullptr, 0});
    }
  }
}

// Points the code to a row of the block: the one at these indices.
void Group::point(const Run &run, Worker *worker, std::vector<Instruction> *code,
                  const int64_t *at) const {
  for (size_t i = 0; i < run.parts.size(); i++) {
    const Part &part = run.parts[i];
    Instruction &to = (*code)[i];
    Operation operation = part.operation;
    if (part.operand < 0) {
      to.data = const_cast<char *>(part.number);
    } else {
      const size_t o = size_t(part.operand);
      int64_t offset = 0;
      for (size_t d = 0; d + 1 < worker->shape.size(); d++) offset += at[d] * block_strides[o][d];
      to.data = static_cast<char *>(worker->tensors[o].dl.data) + offset * operands[o].itemsize;
      if (operation == Operation::stream && reinterpret_cast<uintptr_t>(to.data) % 64)
        operation = Operation::store;
    }
    to.step = run.table->steps[size_t(operation)][size_t(part.form)];
  }
}

// The last elements of a row, fewer than the accumulator has, are copied to where there are as
// many.
void Group::run_tail(const Run &run, Worker *worker, std::vector<Instruction> *code, int64_t begin,
                     int64_t n) const {
  const size_t item = run.is_double ? 8 : 4;
  const auto copy = [&](const auto &function) {
    for (size_t i = 0; i < run.parts.size(); i++)
      if (has_elements(run.parts[i]) && run.parts[i].operand >= 0)
        function(run.parts[i], (*code)[i].data + size_t(begin) * item,
                 worker->tails[size_t(run.parts[i].operand)].bytes);
  };
  std::vector<Instruction> tail = *code;
  copy([&](const Part &part, const char *row, char *bytes) {
    if (!is_store(part)) std::memcpy(bytes, row, size_t(n) * item);
  });
  for (size_t i = 0; i < run.parts.size(); i++)
    if (has_elements(run.parts[i]) && run.parts[i].operand >= 0)
      tail[i].data = worker->tails[size_t(run.parts[i].operand)].bytes;
  run.table->run(tail.data(), 0, run.table->elements * int64_t(item));
  copy([&](const Part &part, char *row, const char *bytes) {
    if (is_store(part)) std::memcpy(row, bytes, size_t(n) * item);
  });
}

void Group::run_code(size_t index, Worker *worker) const {
  const Run &run = runs[index];
  std::vector<Instruction> &code = worker->codes[index];
  const std::vector<int64_t> &shape = worker->shape;
  const int64_t item = run.is_double ? 8 : 4, length = shape.back();
  const int64_t whole = length / run.table->elements * run.table->elements;
  int64_t at[PLAIT_MAX_DIMS] = {};
  while (true) {
    point(run, worker, &code, at);
    run.table->run(code.data(), 0, whole * item);
    if (whole < length) run_tail(run, worker, &code, whole, length - whole);
    size_t d = shape.size() - 1;  // the next row
    while (d > 0 && ++at[d - 1] == shape[d - 1]) at[--d] = 0;
    if (d == 0) break;
  }
  const bool streams = std::any_of(run.parts.begin(), run.parts.end(), [](const Part &part) {
    return part.operation == Operation::stream;
  });
  if (streams) run.table->fence();
}

}  // namespace plait::graph
