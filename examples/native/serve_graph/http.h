/* Requests and responses of HTTP/1.1 (RFC 9112), as bytes in memory: nothing is read or sent. */
#ifndef SERVE_GRAPH_HTTP_H
#define SERVE_GRAPH_HTTP_H
#include <stdbool.h>
#include <stddef.h>

enum { HTTP_LARGEST_HEAD = 8192 };

/* What the head of a request says. */
typedef struct http_request {
  char method[16], path[256];
  char content_type[64], accept[64]; /* in small letters, without parameters */
  size_t head, body;                 /* bytes */
  bool keep_alive, expects_continue;
} http_request;

/* Read the head of a request from the `n` bytes that have arrived. Returns 0 if it is not complete
 * yet, 200 if it is, or the status of an error: the body would be longer than `largest_body`, the
 * head is malformed, or it asks for what this server does not have. */
int http_read_head(const char *data, size_t n, size_t largest_body, http_request *out);

/* The text of a status, such as "Not Found". */
const char *http_reason(int status);

/* Write the head of a response to `out`, which has room for 512 bytes; returns their number. */
size_t http_write_head(char *out, int status, const char *content_type, size_t body,
                       bool keep_alive);

#endif
