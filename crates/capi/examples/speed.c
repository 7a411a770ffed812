/*
 * How fast a packed model runs by these functions, on one thread.
 *
 *     yes 1000 | head -n 9 | ./speed MODEL
 *
 * Does as many steps as each line says, and prints the seconds that they took.
 */
#define _POSIX_C_SOURCE 200809L
#include <minrnn.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void check(minrnn_status status)
{
    if (status == MINRNN_OK)
        return;
    fprintf(stderr, "error %d: %s\n", (int)status, minrnn_last_error());
    exit(1);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(int argc, char **argv)
{
    minrnn_model *model;
    minrnn_session *session;
    uint32_t token = 0;
    long steps;

    if (argc != 2) {
        fprintf(stderr, "usage: %s MODEL\n", argv[0]);
        return 2;
    }
    check(minrnn_model_open(argv[1], &model));
    check(minrnn_session_new(model, 1, &session));
    size_t n_outputs = minrnn_model_size(model, MINRNN_SIZE_OUTPUTS);
    size_t n_columns = minrnn_model_size(model, MINRNN_SIZE_COLUMNS);
    size_t vocab = minrnn_model_size(model, MINRNN_SIZE_VOCAB);
    float *outputs = calloc(n_outputs, sizeof *outputs);
    double *values = calloc(n_columns + 1, sizeof *values), *predictions = calloc(n_outputs, sizeof *predictions);
    if (outputs == NULL || values == NULL || predictions == NULL || (vocab == 0 && n_columns == 0)) {
        fprintf(stderr, "expected a model of tokens or of a table\n");
        return 1;
    }
    while (scanf("%ld", &steps) == 1) {
        double start = seconds();
        for (long i = 0; i < steps; i++) {
            if (vocab > 0) {
                token = (token * 31 + 7) % (uint32_t)vocab;
                check(minrnn_step_tokens(session, NULL, 0, &token, 1, outputs, n_outputs));
            } else {
                values[0] = 0.1 * (double)(i % 64);
                check(minrnn_table_step(session, NULL, 0, values, n_columns, predictions, n_outputs));
            }
        }
        printf("%.9f\n", seconds() - start);
        fflush(stdout);
    }
    free(predictions);
    free(values);
    free(outputs);
    check(minrnn_session_free(session));
    check(minrnn_model_free(model));
    return 0;
}
