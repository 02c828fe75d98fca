#include "arrays.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void buffer_add(buffer *b, const void *data, size_t n) {
  if (b->failed) return;
  if (b->room - b->n < n) {
    const size_t room = 2 * b->room + n + 256;
    char *bytes = realloc(b->data, room);
    if (!bytes) {
      b->failed = true;
      return;
    }
    b->data = bytes;
    b->room = room;
  }
  if (n) memcpy(b->data + b->n, data, n);
  b->n += n;
}

void buffer_print(buffer *b, const char *format, ...) {
  char text[512];
  va_list args;
  va_start(args, format);
  const int n = vsnprintf(text, sizeof text, format, args);
  va_end(args);
  buffer_add(b, text, n < (int)sizeof text ? (size_t)n : sizeof text - 1);
}

/* A text as JSON has it. */
static void add_string(buffer *b, const char *text) {
  buffer_add(b, "\"", 1);
  for (; *text; text++) {
    if (*text == '"' || *text == '\\' || (unsigned char)*text < 32)
      buffer_print(b, "\\u%04x", (unsigned)(unsigned char)*text);
    else
      buffer_add(b, text, 1);
  }
  buffer_add(b, "\"", 1);
}

static int fail(char *error, int status, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(error, 256, format, args);
  va_end(args);
  return status;
}

/* Kinds of elements that have a text in JSON. */
typedef enum element { FLOAT32, FLOAT64, INT32, INT64, UINT8, BOOL, OTHER } element;

static element element_of(const char *dtype) {
  static const char *const names[] = {"float32", "float64", "int32", "int64", "uint8", "bool"};
  for (int i = 0; i < OTHER; i++)
    if (!strcmp(dtype, names[i])) return (element)i;
  return OTHER;
}

static plait_run_tensor tensor_at(plait_run *run, int kind, uint32_t i) {
  plait_run_tensor tensor = {.size = sizeof tensor};
  if (plait_run_get(run, kind, i, &tensor)) tensor.ndim = -1;
  return tensor;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

typedef struct reader {
  const char *at, *name;
  const plait_run_tensor *tensor;
  element kind;
  char *out, *error; /* where the next element goes */
} reader;

static void skip_spaces(reader *r) {
  while (*r->at == ' ' || *r->at == '\n' || *r->at == '\r' || *r->at == '\t') r->at++;
}

static bool take(reader *r, char c) {
  skip_spaces(r);
  if (*r->at != c) return false;
  r->at++;
  return true;
}

/* The end of a number in JSON's grammar; `start` if there is none. */
static const char *number_end(const char *start, bool *is_integer) {
  const char *c = start + (*start == '-');
  if (*c == '0')
    c++;
  else if (*c >= '1' && *c <= '9')
    while (*c >= '0' && *c <= '9') c++;
  else
    return start;
  *is_integer = true;
  if (*c == '.') {
    *is_integer = false;
    if (*++c < '0' || *c > '9') return start;
    while (*c >= '0' && *c <= '9') c++;
  }
  if (*c == 'e' || *c == 'E') {
    *is_integer = false;
    c++;
    if (*c == '+' || *c == '-') c++;
    if (*c < '0' || *c > '9') return start;
    while (*c >= '0' && *c <= '9') c++;
  }
  return c;
}

#define PUT(type, value)                        \
  do {                                          \
    const type element_ = (type)(value);        \
    memcpy(r->out, &element_, sizeof element_); \
    r->out += sizeof element_;                  \
  } while (0)

static int read_number(reader *r) {
  bool is_integer = false;
  skip_spaces(r);
  if (r->kind == BOOL && (!strncmp(r->at, "true", 4) || !strncmp(r->at, "false", 5))) {
    const bool value = *r->at == 't';
    r->at += value ? 4 : 5;
    PUT(uint8_t, value);
    return 200;
  }
  const char *end = number_end(r->at, &is_integer);
  if (end == r->at || r->kind == BOOL)
    return fail(r->error, 400, "%s: %s is required in place of \"%.20s\"", r->name,
                r->kind == BOOL ? "true or false" : "a number", r->at);
  errno = 0;
  if (r->kind == FLOAT32)
    PUT(float, strtod(r->at, NULL));
  else if (r->kind == FLOAT64)
    PUT(double, strtod(r->at, NULL));
  else {
    const long long value = is_integer ? strtoll(r->at, NULL, 10) : 0;
    const bool fits = r->kind == INT64   ? true
                      : r->kind == INT32 ? value >= INT32_MIN && value <= INT32_MAX
                                         : value >= 0 && value <= 255;
    if (!is_integer || errno || !fits)
      return fail(r->error, 400, "%s: %.*s is no %s", r->name,
                  end - r->at < 30 ? (int)(end - r->at) : 30, r->at, r->tensor->dtype);
    if (r->kind == INT64)
      PUT(int64_t, value);
    else if (r->kind == INT32)
      PUT(int32_t, value);
    else
      PUT(uint8_t, value);
  }
  r->at = end;
  return 200;
}

/* A list of the sizes of the tensor from `axis` on. */
static int read_list(reader *r, int32_t axis) {
  if (axis == r->tensor->ndim) return read_number(r);
  const int64_t size = r->tensor->shape[axis];
  if (!take(r, '['))
    return fail(r->error, 400, "%s: a list of %" PRId64 " is required in place of \"%.20s\"",
                r->name, size, r->at);
  for (int64_t i = 0; i < size; i++) {
    if (i && !take(r, ','))
      return fail(r->error, 400, "%s: axis %d has %" PRId64 " elements, got %" PRId64, r->name,
                  (int)axis, size, i);
    const int status = read_list(r, axis + 1);
    if (status != 200) return status;
  }
  if (take(r, ']')) return 200;
  return fail(r->error, 400,
              "%s: axis %d has %" PRId64
              " elements; ] is required in place of "
              "\"%.20s\"",
              r->name, (int)axis, size, r->at);
}

static int read_json_input(plait_run *run, uint32_t i, reader *r) {
  const plait_run_tensor x = tensor_at(run, PLAIT_RUN_INPUT, i);
  r->tensor = &x;
  r->name = x.name;
  r->kind = element_of(x.dtype);
  if (r->kind == OTHER)
    return fail(r->error, 415, "%s is %s, which JSON has no text for; send " TYPE_BYTES, x.name,
                x.dtype);
  char *data = malloc(x.nbytes + 1);
  if (!data) return fail(r->error, 503, "there is no memory");
  r->out = data;
  int status = read_list(r, 0);
  if (status == 200 && plait_run_set(run, PLAIT_RUN_INPUT, i, data, x.nbytes, 0))
    status = fail(r->error, 400, "%s", plait_run_error(run));
  free(data);
  return status;
}

/* The name of an input, without escapes; its index, or -1. */
static int read_key(plait_run *run, reader *r) {
  char name[256];
  if (!take(r, '"')) return -1;
  const char *end = strchr(r->at, '"');
  if (!end || (size_t)(end - r->at) >= sizeof name) return -1;
  memcpy(name, r->at, (size_t)(end - r->at));
  name[end - r->at] = 0;
  const int index = plait_run_find(run, PLAIT_RUN_INPUT, name);
  if (index < 0) return -1;
  r->at = end + 1;
  return take(r, ':') ? index : -1;
}

static int read_json(plait_run *run, const char *body, size_t n, char *error) {
  reader r = {.at = body, .error = error};
  const uint32_t count = plait_run_count(run, PLAIT_RUN_INPUT);
  int status = 200;
  if (!take(&r, '{')) {
    if (count != 1) return fail(error, 400, "an object with %u inputs is required", count);
    status = read_json_input(run, 0, &r);
  } else {
    uint64_t seen = 0;
    for (uint32_t i = 0; i < count && status == 200; i++) {
      const int index = i && !take(&r, ',') ? -1 : read_key(run, &r);
      if (index < 0 || (index < 64 && seen >> index & 1))
        return fail(error, 400, "the names of %u inputs are required; GET /model has them", count);
      if (index < 64) seen |= (uint64_t)1 << index;
      status = read_json_input(run, (uint32_t)index, &r);
    }
    if (status == 200 && !take(&r, '}'))
      return fail(error, 400, "there are %u inputs; } is required in place of \"%.20s\"", count,
                  r.at);
  }
  if (status != 200) return status;
  skip_spaces(&r);
  return r.at == body + n ? 200 : fail(error, 400, "there is more behind the inputs");
}

static void write_element(buffer *out, element kind, const char *data) {
#define AS(type, format, cast)              \
  do {                                      \
    type value;                             \
    memcpy(&value, data, sizeof value);     \
    buffer_print(out, format, (cast)value); \
  } while (0)
  float f = 0;
  double d = 0;
  if (kind == FLOAT32) memcpy(&f, data, sizeof f);
  if (kind == FLOAT64) memcpy(&d, data, sizeof d);
  if (!isfinite(f) || !isfinite(d)) { /* JSON has no text for them */
    buffer_add(out, "null", 4);
    return;
  }
  switch (kind) {
    case FLOAT32: buffer_print(out, "%.9g", (double)f); break;
    case FLOAT64: buffer_print(out, "%.17g", d); break;
    case INT32: AS(int32_t, "%d", int); break;
    case INT64: AS(int64_t, "%lld", long long); break;
    case BOOL: buffer_print(out, *data ? "true" : "false"); break;
    default: AS(uint8_t, "%d", int); break;
  }
#undef AS
}

static void write_list(buffer *out, const plait_run_tensor *x, element kind, int32_t axis,
                       const char *data) {
  if (axis == x->ndim) {
    write_element(out, kind, data);
    return;
  }
  buffer_add(out, "[", 1);
  for (int64_t i = 0; i < x->shape[axis] && !out->failed; i++) {
    if (i) buffer_add(out, ", ", 2);
    write_list(out, x, kind, axis + 1, data + i * x->strides[axis] * (int64_t)x->item_size);
  }
  buffer_add(out, "]", 1);
}

/* ---- bytes, and files of NumPy --------------------------------------------------------------- */

static int read_bytes(plait_run *run, const char *body, size_t n, char *error) {
  const uint32_t count = plait_run_count(run, PLAIT_RUN_INPUT);
  uint64_t total = 0, begin = 0;
  for (uint32_t i = 0; i < count; i++) total += tensor_at(run, PLAIT_RUN_INPUT, i).nbytes;
  if (n != total) return fail(error, 400, "the inputs have %" PRIu64 " bytes, got %zu", total, n);
  for (uint32_t i = 0; i < count; i++) {
    const uint64_t nbytes = tensor_at(run, PLAIT_RUN_INPUT, i).nbytes;
    if (plait_run_set(run, PLAIT_RUN_INPUT, i, body + begin, nbytes, 0))
      return fail(error, 400, "%s", plait_run_error(run));
    begin += nbytes;
  }
  return 200;
}

/* NumPy's letters for a dtype, or NULL. */
static const char *npy_type(const char *dtype) {
  static const char *const names[][2] = {
      {"float32", "<f4"}, {"float64", "<f8"},  {"float16", "<f2"}, {"int64", "<i8"},
      {"int32", "<i4"},   {"int16", "<i2"},    {"int8", "|i1"},    {"uint8", "|u1"},
      {"bool", "|b1"},    {"complex64", "<c8"}};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (!strcmp(dtype, names[i][0])) return names[i][1];
  return NULL;
}

/* The head of a file of NumPy for a tensor: as NumPy itself writes it, so that one can compare. */
static void write_npy_head(buffer *out, const plait_run_tensor *x) {
  buffer text = {0};
  buffer_print(&text, "{'descr': '%s', 'fortran_order': False, 'shape': (", npy_type(x->dtype));
  for (int32_t i = 0; i < x->ndim; i++)
    buffer_print(&text, "%" PRId64 "%s", x->shape[i],
                 i + 1 < x->ndim ? ", "
                 : x->ndim == 1  ? ","
                                 : "");
  buffer_print(&text, "), }");
  while ((text.n + 11) % 64) buffer_add(&text, " ", 1);
  buffer_add(&text, "\n", 1);
  const unsigned char head[10] = {0x93,
                                  'N',
                                  'U',
                                  'M',
                                  'P',
                                  'Y',
                                  1,
                                  0,
                                  (unsigned char)(text.n & 255),
                                  (unsigned char)(text.n >> 8)};
  buffer_add(out, head, sizeof head);
  buffer_add(out, text.data, text.n);
  out->failed |= text.failed;
  free(text.data);
}

/* A file of NumPy must begin as the one that this program would write, but for spaces. */
static int read_npy(plait_run *run, const char *body, size_t n, char *error) {
  if (plait_run_count(run, PLAIT_RUN_INPUT) != 1)
    return fail(error, 415, "a file of NumPy is one array, and the graph has several inputs");
  const plait_run_tensor x = tensor_at(run, PLAIT_RUN_INPUT, 0);
  if (!npy_type(x.dtype)) return fail(error, 415, "NumPy has no %s", x.dtype);
  buffer head = {0};
  write_npy_head(&head, &x);
  size_t k = 10;
  const size_t length = n < 10 ? 0 : 10 + (unsigned char)body[8] + 256u * (unsigned char)body[9];
  bool same = !head.failed && length && length <= n && !memcmp(body, "\x93NUMPY\1", 7);
  for (size_t i = 10; same && i < length; i++) {
    if (body[i] == ' ' || body[i] == '\n') continue;
    while (k < head.n && (head.data[k] == ' ' || head.data[k] == '\n')) k++;
    same = k < head.n && body[i] == head.data[k++];
  }
  while (k < head.n && (head.data[k] == ' ' || head.data[k] == '\n')) k++;
  same &= k == head.n;
  const int end = head.failed ? 0 : (int)head.n - 10;
  int status = 200;
  if (!same)
    status = fail(error, 400, "a file of NumPy of version 1 with %.*s is required",
                  end < 150 ? end : 150, head.failed ? "" : head.data + 10);
  else if (n - length != x.nbytes)
    status = fail(error, 400, "%s has %" PRIu64 " bytes, got %zu", x.name, x.nbytes, n - length);
  else if (plait_run_set(run, PLAIT_RUN_INPUT, 0, body + length, x.nbytes, 0))
    status = fail(error, 400, "%s", plait_run_error(run));
  free(head.data);
  return status;
}

static void write_elements(buffer *out, const plait_run_tensor *x, int32_t axis, const char *data) {
  if (axis == x->ndim) {
    buffer_add(out, data, x->item_size);
    return;
  }
  for (int64_t i = 0; i < x->shape[axis] && !out->failed; i++)
    write_elements(out, x, axis + 1, data + i * x->strides[axis] * (int64_t)x->item_size);
}

/* ---- all forms ------------------------------------------------------------------------------- */

int read_inputs(plait_run *run, const char *type, const char *body, size_t n, char *error) {
  if (!strcmp(type, TYPE_JSON)) return read_json(run, body, n, error);
  if (!strcmp(type, TYPE_NPY)) return read_npy(run, body, n, error);
  if (!strcmp(type, TYPE_BYTES)) return read_bytes(run, body, n, error);
  return fail(error, 415, "Content-Type must be " TYPE_JSON ", " TYPE_NPY " or " TYPE_BYTES);
}

int write_outputs(plait_run *run, const char *type, buffer *out, char *error) {
  const bool is_json = !strcmp(type, TYPE_JSON), is_npy = !strcmp(type, TYPE_NPY);
  if (!is_json && !is_npy && strcmp(type, TYPE_BYTES))
    return fail(error, 406, "Accept must be " TYPE_JSON ", " TYPE_NPY " or " TYPE_BYTES);
  const uint32_t count = is_json ? plait_run_count(run, PLAIT_RUN_OUTPUT) : 1;
  for (uint32_t i = 0; i < count; i++) {
    const plait_run_tensor y = tensor_at(run, PLAIT_RUN_OUTPUT, i);
    if (y.ndim < 0) return fail(error, 500, "%s", plait_run_error(run));
    const element kind = element_of(y.dtype);
    if ((is_json && kind == OTHER) || (is_npy && !npy_type(y.dtype)))
      return fail(error, 406, "%s is %s; accept " TYPE_BYTES, y.name, y.dtype);
    if (is_json) {
      buffer_add(out, i ? ", " : "{", i ? 2 : 1);
      add_string(out, y.name);
      buffer_add(out, ": ", 2);
      write_list(out, &y, kind, 0, y.data);
    } else {
      if (is_npy) write_npy_head(out, &y);
      write_elements(out, &y, 0, y.data);
    }
  }
  if (is_json) buffer_add(out, "}\n", 2);
  return out->failed ? fail(error, 503, "there is no memory") : 200;
}

void write_description(plait_run *run, buffer *out) {
  const int kinds[] = {PLAIT_RUN_INPUT, PLAIT_RUN_OUTPUT};
  for (int k = 0; k < 2; k++) {
    buffer_print(out, k ? "], \"outputs\": [" : "{\"inputs\": [");
    for (uint32_t i = 0; i < plait_run_count(run, kinds[k]); i++) {
      const plait_run_tensor x = tensor_at(run, kinds[k], i);
      buffer_print(out, i ? ", {\"name\": " : "{\"name\": ");
      add_string(out, x.name);
      if (x.ndim >= 0) buffer_print(out, ", \"dtype\": \"%s\", \"shape\": [", x.dtype);
      for (int32_t d = 0; d < x.ndim; d++)
        buffer_print(out, "%s%" PRId64, d ? ", " : "", x.shape[d]);
      buffer_print(out, x.ndim >= 0 ? "]}" : "}");
    }
  }
  buffer_print(out, "]}\n");
}

size_t largest_body(plait_run *run) {
  size_t elements = 0, bytes = 0;
  for (uint32_t i = 0; i < plait_run_count(run, PLAIT_RUN_INPUT); i++) {
    const plait_run_tensor x = tensor_at(run, PLAIT_RUN_INPUT, i);
    bytes += x.nbytes;
    elements += x.item_size ? x.nbytes / x.item_size : 0;
  }
  const size_t text = 32 * elements; /* digits of a float64, a comma and spaces */
  return (text > bytes ? text : bytes) + 65536;
}
