#include "tool/npy.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string_view>

namespace {

struct Name {
  const char *dtype, *npy;
  int64_t size;
};
constexpr Name kNames[] = {
    {"bool", "|b1", 1},      {"uint8", "|u1", 1},        {"int8", "|i1", 1},
    {"uint16", "<u2", 2},    {"int16", "<i2", 2},        {"uint32", "<u4", 4},
    {"int32", "<i4", 4},     {"uint64", "<u8", 8},       {"int64", "<i8", 8},
    {"float16", "<f2", 2},   {"float32", "<f4", 4},      {"float64", "<f8", 8},
    {"complex64", "<c8", 8}, {"complex128", "<c16", 16},
};

constexpr char kMagic[] = "\x93NUMPY";

[[noreturn]] void fail(const std::string &path, const std::string &text) {
  throw std::runtime_error(path + ": " + text);
}

// The header: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
class Header {
 public:
  Header(const std::string &path, std::string_view text) : path_(path), rest_(text) {}

  void read(Array *array, bool *fortran) {
    expect('{');
    for (int i = 0; i < 3; i++) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr")
        array->dtype = dtype(quoted());
      else if (key == "fortran_order")
        *fortran = boolean();
      else if (key == "shape")
        array->shape = shape();
      else
        damaged();
      skip();
      if (!rest_.empty() && rest_[0] == ',') rest_.remove_prefix(1);
    }
    expect('}');
    if (array->dtype.empty()) damaged();
  }

 private:
  [[noreturn]] void damaged() { fail(path_, "the header of the .npy file is damaged"); }
  void skip() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n')) rest_.remove_prefix(1);
  }
  void expect(char c) {
    skip();
    if (rest_.empty() || rest_[0] != c) damaged();
    rest_.remove_prefix(1);
  }
  std::string quoted() {
    skip();
    const char quote = rest_.empty() ? 0 : rest_[0];
    if (quote != '\'' && quote != '"') fail(path_, "a .npy file of plain numbers is required");
    const size_t end = rest_.find(quote, 1);
    if (end == std::string_view::npos) damaged();
    const std::string result(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return result;
  }
  bool boolean() {
    skip();
    for (const std::string_view word : {"False", "True"})
      if (rest_.substr(0, word.size()) == word) {
        rest_.remove_prefix(word.size());
        return word == "True";
      }
    damaged();
  }
  std::vector<int64_t> shape() {
    std::vector<int64_t> result;
    expect('(');
    for (;;) {
      skip();
      if (!rest_.empty() && rest_[0] == ')') break;
      int64_t n = 0;
      size_t digits = 0;
      for (; digits < rest_.size() && rest_[digits] >= '0' && rest_[digits] <= '9'; digits++)
        if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, rest_[digits] - '0', &n))
          damaged();
      if (!digits || result.size() == 64) damaged();
      rest_.remove_prefix(digits);
      result.push_back(n);
      skip();
      if (!rest_.empty() && rest_[0] == ',')
        rest_.remove_prefix(1);
      else if (rest_.empty() || rest_[0] != ')')
        damaged();
    }
    rest_.remove_prefix(1);
    return result;
  }
  std::string dtype(const std::string &npy) {
    for (const Name &name : kNames)
      if (npy == name.npy) return name.dtype;
    fail(path_, "the dtype " + npy + " of the .npy file is not supported");
  }

  const std::string &path_;
  std::string_view rest_;
};

int64_t item_size(const std::string &dtype) {
  for (const Name &name : kNames)
    if (dtype == name.dtype) return name.size;
  return 0;
}

}  // namespace

Array read_npy(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(path, std::string("cannot be opened (") + std::strerror(errno) + ")");
  const std::string all{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const auto byte = [&](size_t i) { return size_t(uint8_t(all[i])); };
  if (all.size() < 12 || all.compare(0, 6, kMagic, 6) != 0 || byte(6) < 1 || byte(6) > 3)
    fail(path, "is not a .npy file");
  const bool is_short = byte(6) == 1;
  const size_t begin = is_short ? 10 : 12;
  const size_t length = byte(8) | byte(9) << 8 | (is_short ? 0 : byte(10) << 16 | byte(11) << 24);
  if (length > all.size() - begin) fail(path, "is cut off");
  Array array;
  bool fortran = false;
  Header(path, std::string_view(all).substr(begin, length)).read(&array, &fortran);
  if (fortran && array.shape.size() > 1) fail(path, "is in Fortran order; C order is required");
  int64_t nbytes = item_size(array.dtype);
  bool fits = true;
  for (const int64_t n : array.shape) fits = fits && !__builtin_mul_overflow(nbytes, n, &nbytes);
  if (!fits || uint64_t(nbytes) != all.size() - begin - length)
    fail(path, "has " + std::to_string(all.size() - begin - length) +
                   " bytes of elements, which do not fit its shape");
  array.bytes = all.substr(begin + length);
  return array;
}

void write_npy(const std::string &path, const std::string &dtype, const std::vector<int64_t> &shape,
               const std::string &bytes) {
  std::string header = "{'descr': '";
  const size_t start = header.size();
  for (const Name &name : kNames)
    if (dtype == name.dtype) header += name.npy;
  if (header.size() == start) fail(path, "a .npy file does not have the dtype " + dtype);
  header += "', 'fortran_order': False, 'shape': (";
  for (const int64_t n : shape) header += std::to_string(n) + ", ";
  if (shape.size() > 1) header.resize(header.size() - 2);
  header += "), }";
  while ((10 + header.size() + 1) % 64) header += ' ';
  header += '\n';
  std::ofstream file(path, std::ios::binary);
  file.write(kMagic, 6).write("\x01\x00", 2);
  file.put(char(header.size() & 0xff)).put(char(header.size() >> 8));
  file << header;
  file.write(bytes.data(), std::streamsize(bytes.size()));
  file.close();
  if (!file) fail(path, std::string("cannot be written (") + std::strerror(errno) + ")");
}
