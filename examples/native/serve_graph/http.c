#include "http.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

const char *http_reason(int status) {
  switch (status) {
    case 200: return "OK";
    case 400: return "Bad Request";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 406: return "Not Acceptable";
    case 408: return "Request Timeout";
    case 411: return "Length Required";
    case 413: return "Content Too Large";
    case 415: return "Unsupported Media Type";
    case 417: return "Expectation Failed";
    case 431: return "Request Header Fields Too Large";
    case 501: return "Not Implemented";
    case 503: return "Service Unavailable";
    case 505: return "HTTP Version Not Supported";
    default: return "Internal Server Error";
  }
}

size_t http_write_head(char *out, int status, const char *content_type, size_t body,
                       bool keep_alive) {
  const int n = snprintf(
      out, 512,
      "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
      "%s%sConnection: %s\r\n\r\n",
      status, http_reason(status), content_type, body, status == 503 ? "Retry-After: 1\r\n" : "",
      status == 405 ? "Allow: GET, POST\r\n" : "", keep_alive ? "keep-alive" : "close");
  return (size_t)n;
}

/* Letters, digits and signs of a method or the name of a field. */
static bool is_token(const char *text, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (!isalnum((unsigned char)text[i]) && !memchr("!#$%&'*+-.^_`|~", text[i], 15)) return false;
  return n > 0;
}

/* Copy a text; false if it does not fit. */
static bool copy(char *out, size_t room, const char *text, size_t n) {
  if (n >= room) return false;
  memcpy(out, text, n);
  out[n] = 0;
  return true;
}

/* Copy a media type without parameters, in small letters; a longer one becomes "?". */
static void copy_type(char *out, size_t room, const char *text, size_t n) {
  size_t length = 0;
  while (length < n && text[length] != ';' && text[length] != ',' && text[length] != ' ') length++;
  if (!copy(out, room, text, length)) copy(out, room, "?", 1);
  for (char *c = out; *c; c++) *c = (char)tolower((unsigned char)*c);
}

static int read_request_line(const char *line, size_t n, http_request *out) {
  const char *space = memchr(line, ' ', n);
  if (!space || !is_token(line, (size_t)(space - line))) return 400;
  if (!copy(out->method, sizeof out->method, line, (size_t)(space - line))) return 501;
  const char *target = space + 1;
  const char *end = memchr(target, ' ', n - (size_t)(target - line));
  if (!end || end == target || *target != '/') return 400;
  const char *query = memchr(target, '?', (size_t)(end - target));
  if (!copy(out->path, sizeof out->path, target, (size_t)((query ? query : end) - target)))
    return 404;
  const char *version = end + 1;
  const size_t length = n - (size_t)(version - line);
  if (length != 8 || memcmp(version, "HTTP/", 5) || !isdigit((unsigned char)version[5]) ||
      version[6] != '.' || !isdigit((unsigned char)version[7]))
    return 400;
  if (version[5] != '1') return 505;
  out->keep_alive = version[7] != '0';
  return 200;
}

/* What the fields say in all. */
typedef struct fields {
  bool has_length, has_host, is_chunked;
} fields;

static int read_length(const char *value, size_t n, size_t largest, fields *all,
                       http_request *out) {
  size_t length = 0;
  if (!n) return 400;
  for (size_t i = 0; i < n; i++) {
    if (!isdigit((unsigned char)value[i])) return 400;
    length = length > largest ? length : length * 10 + (size_t)(value[i] - '0');
  }
  if (all->has_length && length != out->body) return 400;
  all->has_length = true;
  out->body = length;
  return 200;
}

static bool is_same(const char *text, size_t n, const char *word) {
  return n == strlen(word) && !strncasecmp(text, word, n);
}

static int read_field(const char *line, size_t n, size_t largest, fields *all, http_request *out) {
  const char *colon = memchr(line, ':', n);
  if (!colon || !is_token(line, (size_t)(colon - line))) return 400;
  const size_t name = (size_t)(colon - line);
  const char *value = colon + 1, *end = line + n;
  while (value < end && (*value == ' ' || *value == '\t')) value++;
  while (end > value && (end[-1] == ' ' || end[-1] == '\t')) end--;
  const size_t length = (size_t)(end - value);
  if (is_same(line, name, "content-length")) return read_length(value, length, largest, all, out);
  if (is_same(line, name, "transfer-encoding")) all->is_chunked = true;
  if (is_same(line, name, "host")) all->has_host = true;
  if (is_same(line, name, "connection") && is_same(value, length, "close")) out->keep_alive = false;
  if (is_same(line, name, "connection") && is_same(value, length, "keep-alive"))
    out->keep_alive = true;
  if (is_same(line, name, "content-type"))
    copy_type(out->content_type, sizeof out->content_type, value, length);
  if (is_same(line, name, "accept")) copy_type(out->accept, sizeof out->accept, value, length);
  if (is_same(line, name, "expect")) {
    if (!is_same(value, length, "100-continue")) return 417;
    out->expects_continue = true;
  }
  return 200;
}

/* The end of a line, or NULL if the line is not whole. Control characters end the request. */
static const char *line_end(const char *line, const char *end, int *status) {
  for (const char *c = line; c < end; c++) {
    if (*c == '\r' && c + 1 == end) return NULL;
    if (*c == '\r' && c[1] == '\n') return c;
    if (((unsigned char)*c < 32 && *c != '\t') || *c == 127) {
      *status = 400;
      return NULL;
    }
  }
  return NULL;
}

int http_read_head(const char *data, size_t n, size_t largest_body, http_request *out) {
  memset(out, 0, sizeof *out);
  fields all = {0};
  const size_t seen = n < HTTP_LARGEST_HEAD ? n : HTTP_LARGEST_HEAD;
  const char *line = data, *end = data + seen;
  int status = 200;
  bool needs_host = true;
  for (bool is_first = true;; is_first = false) {
    const char *stop = line_end(line, end, &status);
    if (!stop) return status != 200 ? status : seen < HTTP_LARGEST_HEAD ? 0 : 431;
    const size_t length = (size_t)(stop - line);
    if (is_first)
      status = read_request_line(line, length, out);
    else if (length)
      status = read_field(line, length, largest_body, &all, out);
    if (status != 200) return status;
    if (is_first) needs_host = out->keep_alive; /* of HTTP/1.1 */
    line = stop + 2;
    if (!is_first && !length) break;
  }
  out->head = (size_t)(line - data);
  if (needs_host && !all.has_host) return 400;
  if (all.is_chunked) return all.has_length ? 400 : 411;
  if (!all.has_length && !strcmp(out->method, "POST")) return 411;
  return out->body > largest_body ? 413 : 200;
}
