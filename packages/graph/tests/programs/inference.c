/* Opens a graph, sets its input to 0, 1, 2, ... and prints the first output; as in plait/run.h. */
#include <plait/run.h>

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  plait_run_settings settings = {.size = sizeof settings, .libraries = argc > 2 ? argv[2] : NULL};
  plait_run_tensor x = {.size = sizeof x}, y = {.size = sizeof y};
  plait_run *run;
  float *input = NULL;
  int code = argc > 1 ? plait_run_open(argv[1], &settings, &run) : 2;
  if (code == 2) return 2;
  if (!code) code = plait_run_get(run, PLAIT_RUN_INPUT, 0, &x);
  if (!code) {
    input = malloc(x.nbytes);
    if (!input) return 2;
    for (uint64_t i = 0; i < x.nbytes / x.item_size; i++) input[i] = (float)i;
    code = plait_run_set(run, PLAIT_RUN_INPUT, 0, input, x.nbytes, PLAIT_RUN_BORROW);
  }
  if (!code) code = plait_run_execute(run);
  if (!code) code = plait_run_get(run, PLAIT_RUN_OUTPUT, 0, &y);
  if (code) fprintf(stderr, "error %d: %s\n", code, plait_run_error(run));
  for (uint64_t i = 0; !code && i < y.nbytes / y.item_size; i++)
    printf("%.9g\n", ((const float *)y.data)[i]);
  plait_run_close(run);
  free(input);
  return code ? 1 : 0;
}
