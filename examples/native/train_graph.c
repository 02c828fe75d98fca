/* Trains a graph that plait_graph.export wrote with training=True, without Python: 100 steps on the
 * same random batch, with the learning rate halved after 50, and saves it. */
#include <plait/run.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fill_inputs(plait_run *run) {
  int code = 0;
  for (uint32_t i = 0; !code && i < plait_run_count(run, PLAIT_RUN_INPUT); i++) {
    plait_run_tensor x = {.size = sizeof x};
    code = plait_run_get(run, PLAIT_RUN_INPUT, i, &x);
    void *data = code ? NULL : calloc(x.nbytes + 1, 1);
    if (!data) break;
    if (!strcmp(x.dtype, "float32"))
      for (uint64_t k = 0; k < x.nbytes / 4; k++)
        ((float *)data)[k] = (float)(rand() % 200) / 100 - 1;
    else if (!strcmp(x.dtype, "int64")) /* classes 0 and 1 */
      for (uint64_t k = 0; k < x.nbytes / 8; k++) ((int64_t *)data)[k] = rand() % 2;
    code = plait_run_set(run, PLAIT_RUN_INPUT, i, data, x.nbytes, 0); /* copies */
    free(data);
  }
  return code;
}

static int train(plait_run *run) {
  int code = fill_inputs(run);
  const int lr = plait_run_find(run, PLAIT_RUN_NUMBER, "adam.0.lr");
  for (int step = 0; !code && step < 100; step++) {
    plait_run_tensor loss = {.size = sizeof loss};
    plait_run_tensor rate = {.size = sizeof rate};
    if (step == 50 && lr >= 0) {
      code = plait_run_get(run, PLAIT_RUN_NUMBER, (uint32_t)lr, &rate);
      const double half = code ? 0 : *(const double *)rate.data / 2;
      if (!code) code = plait_run_set(run, PLAIT_RUN_NUMBER, (uint32_t)lr, &half, sizeof half, 0);
    }
    if (!code) code = plait_run_execute(run);
    if (!code) code = plait_run_get(run, PLAIT_RUN_OUTPUT, 0, &loss);
    if (!code && step % 25 == 24) printf("step %d: %.4f\n", step + 1, *(const float *)loss.data);
  }
  return code;
}

int main(int argc, char **argv) {
  if (argc < 2)
    return fprintf(stderr, "usage: train_graph FILE [RESULT [FOLDERS OF LIBRARIES]]\n"), 2;
  plait_run_settings settings = {.size = sizeof settings, .libraries = argc > 3 ? argv[3] : NULL};
  plait_run *run = NULL;
  int code = plait_run_open(argv[1], &settings, &run);
  if (!code) code = train(run);
  if (!code && argc > 2) code = plait_run_save(run, argv[2]);
  if (code) fprintf(stderr, "error %d: %s\n", code, run ? plait_run_error(run) : "no memory");
  plait_run_close(run);
  return code != 0;
}
