/* Bodies of requests and responses: the elements of tensors as bytes, as a file of NumPy, or as
 * lists of numbers in JSON. */
#ifndef SERVE_GRAPH_ARRAYS_H
#define SERVE_GRAPH_ARRAYS_H
#include <plait/run.h>
#include <stdbool.h>
#include <stddef.h>

#define TYPE_BYTES "application/octet-stream"
#define TYPE_NPY "application/x-npy"
#define TYPE_JSON "application/json"

/* Bytes that grow; `failed` if there was no memory. */
typedef struct buffer {
  char *data;
  size_t n, room;
  bool failed;
} buffer;

void buffer_add(buffer *, const void *data, size_t n);
void buffer_print(buffer *, const char *format, ...);

/* Set the inputs of a graph from the body of a request, which a null character follows. Returns
 * 200, or the status of an error, whose text is in `error`, which has room for 256 bytes. */
int read_inputs(plait_run *run, const char *type, const char *body, size_t n, char *error);

/* Write the outputs of a graph in the form of a media type: as bytes and for NumPy the first one,
 * in JSON all. Returns as `read_inputs`. */
int write_outputs(plait_run *run, const char *type, buffer *out, char *error);

/* Describe inputs and outputs in JSON. */
void write_description(plait_run *run, buffer *out);

/* The most bytes that a body needs. */
size_t largest_body(plait_run *run);

#endif
