/* Prints the class with the highest score: classify MODEL ROW, where MODEL is a file that
 * plait_graph.export wrote, and ROW a file with the float32 elements of its input. */
#include <plait/run.h>

#include <stdio.h>
#include <stdlib.h>

static int fail(plait_run *run, const char *what) {
  fprintf(stderr, "%s: %s\n", what, run ? plait_run_error(run) : "no memory");
  plait_run_close(run);
  return 1;
}

int main(int argc, char **argv) {
  if (argc < 3) return fprintf(stderr, "usage: classify MODEL ROW [FOLDERS OF LIBRARIES]\n"), 2;
  plait_run_settings settings = {.size = sizeof settings, .libraries = argc > 3 ? argv[3] : NULL};
  plait_run *run = NULL;
  plait_run_tensor input = {.size = sizeof input}, scores = {.size = sizeof scores};
  if (plait_run_open(argv[1], &settings, &run)) return fail(run, "open");
  if (plait_run_get(run, PLAIT_RUN_INPUT, 0, &input)) return fail(run, "input");

  FILE *file = fopen(argv[2], "rb");
  if (!file) return perror(argv[2]), plait_run_close(run), 1;
  void *row = malloc(input.nbytes + 1); /* one more, so that a longer file shows */
  const size_t count = row ? fread(row, 1, input.nbytes + 1, file) : 0;
  fclose(file);
  /* a wrong number of bytes is an error with a text that has both numbers */
  const int code = plait_run_set(run, PLAIT_RUN_INPUT, 0, row, count, 0); /* copies */
  free(row);
  if (code) return fail(run, argv[2]);

  if (plait_run_execute(run)) return fail(run, "run");
  if (plait_run_get(run, PLAIT_RUN_OUTPUT, 0, &scores)) return fail(run, "output");
  const float *score = scores.data;
  uint64_t best = 0;
  for (uint64_t i = 1; i < scores.nbytes / sizeof *score; i++)
    if (score[i] > score[best]) best = i;
  printf("class %llu, score %.4f\n", (unsigned long long)best, score[best]);
  plait_run_close(run);
  return 0;
}
