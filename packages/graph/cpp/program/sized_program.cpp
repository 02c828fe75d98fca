#include "program/sized_program.hpp"

#include <algorithm>

namespace plait::graph {

namespace {

// So many programs are kept, and more of them while their blocks are small.
constexpr size_t kept_instances = 8, most_instances = 64;
constexpr uint64_t small_bytes = 64 << 20;
constexpr size_t most_sizes = 64;

// Raises an error of JSON or of sizes as an error of the runtime.
template <class F>
auto checked(plait_thread *thread, F &&f) {
  try {
    return f();
  } catch (const JsonError &e) {
    check(runtime->raise(thread, PLAIT_VALUE_ERROR, "graph", "%s", e.what()));
    throw;
  }
}

}  // namespace

bool has_free_sizes(const std::string &text) {
  try {
    const JsonDocument document = JsonDocument::parse(text);
    const auto sizes = document.root().find("sizes");
    return sizes && sizes->size() > 0;
  } catch (const JsonError &) {
    return false;
  }
}

// Writes the graph for one set of sizes: numbers in the place of expressions.
class SizedProgram::Writer {
 public:
  Writer(const SizeNames &names, const std::vector<int64_t> &sizes)
      : names_(names), sizes_(sizes) {}

  std::string graph(Json root) {
    out_ = "{";
    for (const JsonMember member : root.members()) {
      if (member.key == "sizes" || member.key == "guards" || member.key == "shapes") continue;
      key(member.key);
      value(member.value);
    }
    return out_ + "}";
  }

 private:
  void key(std::string_view name) {
    if (out_.back() != '{') out_ += ", ";
    write_json(out_, name);
    out_ += ": ";
  }

  void value(Json v) {  // recursive: a document has kMaxDepth levels
    if (v.is(Json::Kind::array)) return list(v, false);
    if (!v.is(Json::Kind::object)) return write_json(out_, v);
    if (v.size() == 1) {
      if (const auto text = v.find("size")) return write_json(out_, size(text->string()));
      if (const auto parts = v.find("quotient")) return quotient(*parts);
    }
    out_ += '{';
    for (const JsonMember member : v.members()) {
      key(member.key);
      const bool has_sizes = member.key == "shape" || member.key == "strides";
      if (has_sizes && member.value.is(Json::Kind::array))
        list(member.value, true);
      else
        value(member.value);
    }
    out_ += '}';
  }

  void list(Json items, bool has_sizes) {
    out_ += '[';
    for (const Json item : items.items()) {
      if (out_.back() != '[') out_ += ", ";
      if (has_sizes && item.is(Json::Kind::string))
        write_json(out_, size(item.string()));
      else
        value(item);
    }
    out_ += ']';
  }

  int64_t size(std::string_view text) const {
    return SizeExpression::parse(text, names_).evaluate(sizes_);
  }

  // {"quotient": [0.1, "n", "n - 1"]} is 0.1 * n / (n - 1)
  void quotient(Json parts) {
    if (parts.size() != 3) throw JsonError("a quotient has three parts");
    auto at = parts.items().begin();
    const double factor = (*at).number();
    const int64_t above = size((*++at).string()), below = size((*++at).string());
    if (below == 0) throw JsonError("a quotient divides by zero");
    write_json(out_, factor * double(above) / double(below));
  }

  const SizeNames &names_;
  const std::vector<int64_t> &sizes_;
  std::string out_;
};

std::string SizedProgram::Input::text() const {
  std::string result = "[";
  for (size_t i = 0; i < shape.size(); i++)
    result += (i ? ", " : "") + (shape[i] ? shape[i]->text() : std::to_string(numbers[i]));
  return result + "]";
}

void SizedProgram::read_input(Json input) {
  Input result;
  result.name = std::string(input.at("name").string());
  for (const Json item : input.at("shape").items()) {
    const bool is_text = item.is(Json::Kind::string);
    result.shape.emplace_back();
    if (is_text) result.shape.back() = SizeExpression::parse(item.string(), names_);
    result.numbers.push_back(is_text ? 0 : item.integer());
  }
  inputs_.push_back(std::move(result));
}

void SizedProgram::read_sizes(Json graph) {
  for (const JsonMember member : graph.at("sizes").members()) {
    if (!is_size_name(member.key)) throw JsonError(quote(member.key) + " is no name of a size");
    if (sizes_.size() == most_sizes) throw JsonError("a graph has more than 64 free sizes");
    Size size{std::string(member.key), member.value.at("min").integer(),
              member.value.at("max").integer(), member.value.at("value").integer()};
    if (size.min < 0 || size.value < size.min || size.value > size.max)
      throw JsonError("the size " + quote(size.name) + " is " + std::to_string(size.value) +
                      " and from " + std::to_string(size.min) + " to " + std::to_string(size.max));
    names_.push_back(size.name);
    sizes_.push_back(std::move(size));
  }
  if (const auto guards = graph.find("guards"))
    for (const Json each : guards->items())
      guards_.push_back(SizeRelation::parse(each.string(), names_));
  for (const Json each : graph.at("inputs").items()) read_input(each);
  for (size_t k = 0; k < names_.size(); k++) {
    bool is_dimension = false;
    for (const Input &input : inputs_)
      for (const auto &size : input.shape)
        is_dimension |= size && size->single_name() == int32_t(k);
    if (!is_dimension)
      throw JsonError("the size " + quote(names_[k]) + " is not a dimension of an input");
  }
}

std::unique_ptr<SizedProgram> SizedProgram::parse(plait_thread *thread, std::string_view text) {
  std::unique_ptr<SizedProgram> result(new SizedProgram);
  checked(thread, [&] {
    JsonDocument document = JsonDocument::parse(text);
    const auto known = document.root().find("sizes");
    if (!known || known->size() == 0) return;
    if constexpr (!kSelectsSizes)
      throw JsonError("the graph has free sizes; this library is compiled for graphs without them");
    result->read_sizes(document.root());
    result->document_.emplace(std::move(document));
  });
  if (result->has_sizes())
    result->program(thread);
  else
    result->instances_.push_back({{}, Program::parse(thread, text)});
  return result;
}

std::vector<int64_t> SizedProgram::values() const {
  std::vector<int64_t> result;
  for (const Size &size : sizes_) result.push_back(size.value);
  return result;
}

void SizedProgram::check_sizes(const std::vector<int64_t> &sizes) const {
  std::string text;
  for (size_t i = 0; i < sizes.size(); i++) {
    if (sizes[i] < sizes_[i].min || sizes[i] > sizes_[i].max)
      throw JsonError("the size " + names_[i] + " is " + std::to_string(sizes[i]) +
                      "; the graph is for " + std::to_string(sizes_[i].min) + " to " +
                      std::to_string(sizes_[i].max));
    text += (i ? ", " : "") + names_[i] + " = " + std::to_string(sizes[i]);
  }
  for (const SizeRelation &guard : guards_)
    if (!guard.holds(sizes))
      throw JsonError("the graph is for sizes with " + guard.text() + "; got " + text);
}

// Whether the values have the shapes that the recordings had: expressions that fit them could be
// others than those that the function means.
void SizedProgram::check_shapes(const Program &program, const std::vector<int64_t> &sizes) const {
  const auto shapes = document_->root().find("shapes");
  if (!shapes) return;
  std::unordered_map<std::string_view, Json> expected;
  for (const JsonMember member : shapes->members()) expected.emplace(member.key, member.value);
  for (const auto &[name, shape] : program.shapes()) {
    const auto known = expected.find(name);
    if (known == expected.end()) continue;
    size_t i = 0;
    bool fits = known->second.size() == shape.size();
    for (const Json item : known->second.items()) {
      if (!fits) break;
      fits = shape[i++] == (item.is(Json::Kind::string)
                                ? SizeExpression::parse(item.string(), names_).evaluate(sizes)
                                : item.integer());
    }
    if (fits) continue;
    std::string text;
    write_json(text, known->second);
    throw JsonError("the value " + quote(name) + " has the shape " +
                    plait::text(shape.data(), int64_t(shape.size())) + " for these sizes, not " +
                    text);
  }
}

std::unique_ptr<Program> SizedProgram::make(plait_thread *thread,
                                            const std::vector<int64_t> &sizes) const {
  const std::string text = checked(thread, [&] {
    check_sizes(sizes);
    return Writer(names_, sizes).graph(document_->root());
  });
  std::unique_ptr<Program> program = Program::parse(thread, text);
  checked(thread, [&] { check_shapes(*program, sizes); });
  program->keep_outputs(keeps_outputs_);
  if (is_bound_) program->bind(thread, weights_);
  return program;
}

std::shared_ptr<Program> SizedProgram::instance(plait_thread *thread,
                                                const std::vector<int64_t> &sizes) {
  const auto known = std::find_if(instances_.begin(), instances_.end(),
                                  [&](const Instance &each) { return each.sizes == sizes; });
  if (known == instances_.end()) {
    Instance made{sizes, make(thread, sizes)};
    if (!instances_.empty()) made.program->numbers() = instances_.back().program->numbers();
    instances_.push_back(std::move(made));
    uint64_t bytes = 0;
    for (const Instance &each : instances_) bytes += each.program->planned_bytes();
    while (instances_.size() > most_instances ||
           (instances_.size() > kept_instances && bytes > small_bytes)) {
      bytes -= instances_.front().program->planned_bytes();
      instances_.erase(instances_.begin());
    }
  } else if (&*known != &instances_.back()) {
    known->program->numbers() = instances_.back().program->numbers();
    std::rotate(known, known + 1, instances_.end());
  }
  return instances_.back().program;
}

Program &SizedProgram::program(plait_thread *thread) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return has_sizes() ? *instance(thread, values()) : *instances_.back().program;
}

void SizedProgram::set_size(plait_thread *thread, size_t i, int64_t value) {
  const Size &size = sizes_[i];
  if (value < size.min || value > size.max)
    check(runtime->raise(thread, PLAIT_VALUE_ERROR, "graph",
                         "the size %s is %lld; the graph is for %lld to %lld", size.name.c_str(),
                         static_cast<long long>(value), static_cast<long long>(size.min),
                         static_cast<long long>(size.max)));
  sizes_[i].value = value;
}

bool SizedProgram::fit_input(plait_thread *thread, size_t i, uint64_t nbytes) {
  if (!has_sizes()) return false;
  const Input &input = inputs_[i];
  uint64_t rest = uint64_t(itemsize(program(thread).input_type(i).dtype));
  int32_t name = -1;
  for (size_t k = 0; k < input.shape.size(); k++) {
    if (!input.shape[k]) {
      if (__builtin_mul_overflow(rest, uint64_t(input.numbers[k]), &rest)) return false;
      continue;
    }
    if (name >= 0 || input.shape[k]->single_name() < 0) return false;
    name = input.shape[k]->single_name();
  }
  if (name < 0 || rest == 0 || nbytes % rest) return false;
  set_size(thread, size_t(name), int64_t(std::min<uint64_t>(nbytes / rest, INT64_MAX)));
  return true;
}

void SizedProgram::bind(plait_thread *thread, const std::vector<Tensor> &weights) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const Instance &each : instances_) each.program->bind(thread, weights);
  weights_ = weights;
  is_bound_ = true;
}

void SizedProgram::keep_outputs(bool keeps) {
  const std::lock_guard<std::mutex> lock(mutex_);
  keeps_outputs_ = keeps;
  for (const Instance &each : instances_) each.program->keep_outputs(keeps);
}

uint64_t SizedProgram::tensor_bytes() {
  const std::lock_guard<std::mutex> lock(mutex_);
  uint64_t total = 0;
  for (const Instance &each : instances_) {
    const bool is_set = &each == &instances_.back();
    if (is_set || each.program->has_run()) total += each.program->tensor_bytes(is_set);
  }
  return total;
}

std::vector<int64_t> SizedProgram::sizes_of(plait_thread *thread, plait_tensor *const *inputs,
                                            size_t n) const {
  if (n != inputs_.size())
    check(runtime->raise(thread, PLAIT_VALUE_ERROR, "graph", "it has %zu inputs, got %zu",
                         inputs_.size(), n));
  std::vector<int64_t> result(sizes_.size(), -1);
  const auto fail = [&](const Input &input, const plait_tensor *t) {
    std::string text;
    for (size_t k = 0; k < result.size(); k++)
      if (result[k] >= 0) text += ", " + names_[k] + " = " + std::to_string(result[k]);
    check(runtime->raise(thread, PLAIT_SHAPE_ERROR, "graph",
                         "the input %s has the shape %s; the graph is for %s%s", input.name.c_str(),
                         shape_text(t).c_str(), input.text().c_str(), text.c_str()));
  };
  for (size_t i = 0; i < n; i++) {
    const Input &input = inputs_[i];
    const DLTensor &dl = inputs[i]->dl;
    if (size_t(dl.ndim) != input.shape.size()) fail(input, inputs[i]);
    for (int k = 0; k < dl.ndim; k++) {
      const int32_t name = input.shape[size_t(k)] ? input.shape[size_t(k)]->single_name() : -1;
      if (name >= 0 && result[size_t(name)] < 0) result[size_t(name)] = dl.shape[k];
    }
  }
  for (size_t i = 0; i < n; i++)
    for (int k = 0; k < inputs[i]->dl.ndim; k++) {
      const auto &size = inputs_[i].shape[size_t(k)];
      const int64_t expected = size ? checked(thread, [&] { return size->evaluate(result); })
                                    : inputs_[i].numbers[size_t(k)];
      if (inputs[i]->dl.shape[k] != expected) fail(inputs_[i], inputs[i]);
    }
  return result;
}

void SizedProgram::run(plait_thread *thread, plait_tensor *const *inputs, size_t n,
                       std::vector<Tensor> *outputs) {
  if (!has_sizes()) return instances_.back().program->run(thread, inputs, n, outputs);
  const std::vector<int64_t> sizes = sizes_of(thread, inputs, n);
  std::unique_lock<std::mutex> lock(mutex_);
  const std::shared_ptr<Program> program = instance(thread, sizes);
  if (program->numbers().empty()) lock.unlock();  // numbers go on from one program to the next
  program->run(thread, inputs, n, outputs);
}

}  // namespace plait::graph
