#include "run/file.hpp"

#include <algorithm>
#include <cstring>

#include "graph.hpp"
#include "json.hpp"

namespace plait::graph {
namespace {

struct DTypeName {
  const char *name;
  DType dtype;
};
constexpr DTypeName kDTypes[] = {
    {"BOOL", dtype::bool_},
    {"U8", dtype::uint8},
    {"I8", dtype::int8},
    {"U16", dtype::uint16},
    {"I16", dtype::int16},
    {"F16", dtype::float16},
    {"BF16", dtype::bfloat16},
    {"U32", dtype::uint32},
    {"I32", dtype::int32},
    {"F32", dtype::float32},
    {"U64", dtype::uint64},
    {"I64", dtype::int64},
    {"F64", dtype::float64},
    {"C64", dtype::complex64},
    {"F8_E4M3", dtype::float8_e4m3fn},
    {"F8_E4M3FNUZ", dtype::float8_e4m3fnuz},
    {"F8_E5M2", dtype::float8_e5m2},
    {"F8_E5M2FNUZ", dtype::float8_e5m2fnuz},
    {"F8_E8M0", dtype::float8_e8m0fnu},
};

// Elements times bytes, or false if that exceeds 63 bits.
bool bytes_of(const std::vector<int64_t> &shape, DType dtype, uint64_t *nbytes) {
  int64_t n = itemsize(dtype);
  for (const int64_t size : shape)
    if (__builtin_mul_overflow(n, size, &n)) return false;
  *nbytes = uint64_t(n);
  return true;
}

uint64_t alignment(DType d) { return uint64_t(d.code == kDLComplex ? d.bits / 16 : itemsize(d)); }

std::vector<int64_t> sizes(Json list, size_t most) {
  if (list.size() > most)
    throw JsonError("a list of at most " + std::to_string(most) + " sizes is expected");
  std::vector<int64_t> result;
  result.reserve(list.size());
  for (const Json item : list.items()) {
    if (item.integer() < 0) throw JsonError("a size must not be negative");
    result.push_back(item.integer());
  }
  return result;
}

}  // namespace

const char *TensorFile::dtype_name(DType d) {
  for (const DTypeName &each : kDTypes)
    if (same(each.dtype, d)) return each.name;
  return nullptr;
}

void TensorFile::fail(const std::string &text) const { source_->fail(text); }

TensorFile::TensorFile(std::unique_ptr<ByteSource> source)
    : source_(std::move(source)), size_(source_->size()) {
  read_header();
}

TensorFile::~TensorFile() = default;

void TensorFile::read_bytes(uint64_t offset, void *data, uint64_t nbytes) const {
  source_->read(offset, data, nbytes);
}

void TensorFile::read_header() {
  uint8_t bytes[8];
  if (size_ < sizeof bytes)
    fail("the file has " + std::to_string(size_) + " bytes; a safetensors file has at least 8");
  read_bytes(0, bytes, sizeof bytes);
  uint64_t length = 0;
  for (int i = 7; i >= 0; i--) length = length << 8 | bytes[i];
  if (length > kLargestHeader)
    fail("the header has " + std::to_string(length) + " bytes, more than " +
         std::to_string(kLargestHeader) + ": the file is damaged, or not a safetensors file");
  if (length > size_ - sizeof bytes)
    fail("the file is cut off: it has " + std::to_string(size_) + " bytes, the header ends at " +
         std::to_string(length + sizeof bytes));
  data_ = length + sizeof bytes;
  std::string text(size_t(length), '\0');
  read_bytes(sizeof bytes, text.data(), length);
  std::string part;  // of the header, for errors
  try {
    const JsonDocument document = JsonDocument::parse(text);
    text = std::string();
    entries_.reserve(document.root().size());
    for (const JsonMember member : document.root().members()) {
      part = member.key;
      if (member.key != "__metadata__") {
        add_entry(member.key, member.value);
        continue;
      }
      for (const JsonMember each : member.value.members())
        texts_.emplace_back(each.key, each.value.string());
    }
  } catch (const JsonError &error) {
    fail("the header is damaged: " + (part.empty() ? "" : quote(part) + ": ") + error.what());
  }
  check_cover();
}

void TensorFile::add_entry(std::string_view name, const Json &entry) {
  if (name.find('\0') != std::string_view::npos) throw JsonError("a name with a null character");
  if (entry.size() != 3) throw JsonError("dtype, shape and data_offsets are expected");
  const std::string_view dtype_name = entry.at("dtype").string();
  const auto *known = std::find_if(std::begin(kDTypes), std::end(kDTypes),
                                   [&](const DTypeName &each) { return dtype_name == each.name; });
  if (known == std::end(kDTypes)) throw JsonError("the dtype " + quote(dtype_name) + " is unknown");
  std::vector<int64_t> shape = sizes(entry.at("shape"), PLAIT_MAX_DIMS);
  const std::vector<int64_t> offsets = sizes(entry.at("data_offsets"), 2);
  uint64_t nbytes = 0;
  if (offsets.size() != 2 || offsets[0] > offsets[1])
    throw JsonError("data_offsets must be a begin and an end");
  if (!bytes_of(shape, known->dtype, &nbytes) || nbytes != uint64_t(offsets[1] - offsets[0]))
    throw JsonError("the shape " + plait::text(shape.data(), int64_t(shape.size())) + " of " +
                    known->name + " does not fit " + std::to_string(offsets[1] - offsets[0]) +
                    " bytes");
  entries_.push_back(
      {std::string(name), known->dtype, std::move(shape), uint64_t(offsets[0]), nbytes});
}

// The entries must cover the bytes behind the header, each once. Sorts them by name.
void TensorFile::check_cover() {
  std::sort(entries_.begin(), entries_.end(), [](const FileEntry &a, const FileEntry &b) {
    return a.begin != b.begin ? a.begin < b.begin : a.nbytes < b.nbytes;
  });
  uint64_t position = 0;
  for (const FileEntry &entry : entries_) {
    if (entry.begin != position)
      fail("the header is damaged: the bytes of " + quote(entry.name) + " begin at " +
           std::to_string(entry.begin) + ", those of the tensors before it end at " +
           std::to_string(position));
    position += entry.nbytes;
  }
  const uint64_t data = size_ - data_;
  if (position != data)
    fail(std::string("the file ") +
         (data < position ? "is cut off" : "is longer than its header says") +
         ": its tensors have " + std::to_string(position) + " bytes, behind the header are " +
         std::to_string(data));
  std::sort(entries_.begin(), entries_.end(),
            [](const FileEntry &a, const FileEntry &b) { return a.name < b.name; });
}

const FileEntry *TensorFile::find(std::string_view name) const {
  const auto at = std::lower_bound(
      entries_.begin(), entries_.end(), name,
      [](const FileEntry &entry, std::string_view wanted) { return entry.name < wanted; });
  return at != entries_.end() && at->name == name ? &*at : nullptr;
}

const std::string *TensorFile::text(std::string_view key) const {
  for (const auto &[name, value] : texts_)
    if (name == key) return &value;
  return nullptr;
}

void TensorFile::check_type(const FileEntry &entry, DType dtype,
                            const std::vector<int64_t> &shape) const {
  if (same(dtype, entry.dtype) && shape == entry.shape) return;
  std::vector<int64_t> pairs = shape;
  pairs.push_back(2);
  if (same(dtype, dtype::complex128) && same(entry.dtype, dtype::float64) && pairs == entry.shape)
    return;
  fail("the tensor " + quote(entry.name) + " is " + plait::name(entry.dtype) + " of shape " +
       plait::text(entry.shape.data(), int64_t(entry.shape.size())) + "; " + plait::name(dtype) +
       " of shape " + plait::text(shape.data(), int64_t(shape.size())) + " is required");
}

Tensor TensorFile::read(plait_thread *thread, const FileEntry &entry, DType dtype,
                        const std::vector<int64_t> &shape) const {
  check_type(entry, dtype, shape);
  Tensor tensor;
  check(runtime->tensor_new(thread, dtype, int32_t(shape.size()), shape.data(), nullptr,
                            DLDevice{kDLCPU, 0}, tensor.out()));
  auto *data = tensor.data<uint8_t>();
  read_bytes(data_ + entry.begin, data, entry.nbytes);
  if (same(entry.dtype, dtype::bool_)) {
    const uint8_t *wrong = std::find_if(data, data + entry.nbytes, [](uint8_t b) { return b > 1; });
    if (wrong != data + entry.nbytes)
      fail("the tensor " + quote(entry.name) + " of bool has the byte " + std::to_string(*wrong));
  }
  return tensor;
}

Tensor TensorFile::map(plait_thread *thread, const FileEntry &entry, DType dtype,
                       const std::vector<int64_t> &shape) const {
  check_type(entry, dtype, shape);
  if (!entry.nbytes || same(dtype, dtype::bool_)) return read(thread, entry, dtype, shape);
  if (!mapping_) mapping_ = source_->map();
  if (!mapping_) return read(thread, entry, dtype, shape);
  char *data = mapping_.get() + data_ + entry.begin;
  if (reinterpret_cast<uintptr_t>(data) % alignment(dtype))
    return read(thread, entry, dtype, shape);
  auto holder = std::make_unique<std::shared_ptr<char>>(mapping_);
  const auto release = [](void *p) { delete static_cast<std::shared_ptr<char> *>(p); };
  Ref<plait_storage> storage;
  check(runtime->storage_wrap(thread, data, entry.nbytes, DLDevice{kDLCPU, 0}, PLAIT_STORAGE_MAPPED,
                              release, holder.get(), storage.out()));
  holder.release();
  Tensor tensor;
  check(runtime->tensor_on(thread, storage.get(), data, dtype, int32_t(shape.size()), shape.data(),
                           nullptr, tensor.out()));
  return tensor;
}

namespace {

// The tensor on the CPU, dense in C order.
Tensor dense(plait_thread *thread, const Tensor &tensor) {
  Tensor host;
  check(runtime->host_copy(thread, tensor.get(), host.out()));
  if (is_contiguous(host.get())) return host;
  static const Operator contiguous(runtime, "contiguous");
  return contiguous(thread, host);
}

uint64_t nbytes_of(const plait_tensor *t) { return uint64_t(numel(t) * itemsize(t->dl.dtype)); }

std::string header_text(const Texts &texts, const std::vector<const NamedTensor *> &tensors) {
  std::string out = "{\"__metadata__\": {";
  const char *separator = "";
  for (const auto &[key, value] : texts) {
    out += separator;
    write_json(out, std::string_view(key));
    out += ": ";
    write_json(out, std::string_view(value));
    separator = ", ";
  }
  out += '}';
  uint64_t begin = 0;
  for (const NamedTensor *each : tensors) {
    const plait_tensor *t = each->tensor.get();
    const bool pairs = same(t->dl.dtype, dtype::complex128);
    const char *dtype = pairs ? "F64" : TensorFile::dtype_name(t->dl.dtype);
    if (!dtype)
      throw FileError("no file of tensors has the dtype " + std::string(name(t->dl.dtype)));
    out += ", ";
    write_json(out, std::string_view(each->name));
    out += std::string(": {\"dtype\": \"") + dtype + "\", \"shape\": [";
    for (int32_t i = 0; i < t->dl.ndim; i++)
      out += (i ? ", " : "") + std::to_string(t->dl.shape[i]);
    if (pairs) out += t->dl.ndim ? ", 2" : "2";
    out += "], \"data_offsets\": [" + std::to_string(begin) + ", ";
    begin += nbytes_of(t);
    out += std::to_string(begin) + "]}";
  }
  out += '}';
  while ((out.size() + 8) % 64) out += ' ';
  return out;
}

}  // namespace

void write_tensors(plait_thread *thread, ByteSink *sink, const Texts &texts,
                   const std::vector<NamedTensor> &tensors) {
  std::vector<const NamedTensor *> order;
  for (const NamedTensor &each : tensors) order.push_back(&each);
  // Larger items first, so that all are aligned.
  std::stable_sort(order.begin(), order.end(), [](const NamedTensor *a, const NamedTensor *b) {
    return alignment(a->tensor.dtype()) > alignment(b->tensor.dtype());
  });
  const std::string header = header_text(texts, order);
  if (header.size() > TensorFile::kLargestHeader)
    sink->fail("the header would have " + std::to_string(header.size()) + " bytes; at most " +
               std::to_string(TensorFile::kLargestHeader) + " are allowed");
  uint8_t length[8];
  for (int i = 0; i < 8; i++) length[i] = uint8_t(uint64_t(header.size()) >> (8 * i));
  sink->write(length, sizeof length);
  sink->write(header.data(), header.size());
  for (const NamedTensor *each : order) {
    const Tensor bytes = dense(thread, each->tensor);
    sink->write(bytes.data<char>(), nbytes_of(bytes.get()));
  }
}

}  // namespace plait::graph
