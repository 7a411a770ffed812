/*
 * Runs a packed model.
 *
 *     stream text.minrnn "Once upon a time"    continues a text
 *     stream machines.minrnn < rows            says of every row what it lets expect
 *
 * A row is a line of numbers, one for each column that the model reads, with
 * commas or blanks between them; "nan" stands for one that is missing.
 */
#include <minrnn.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH = 200, SEED = 1 };

/* Ends the program with the sentence of a call that was refused. */
static void check(minrnn_status status)
{
    if (status == MINRNN_OK)
        return;
    fprintf(stderr, "error %d: %s\n", (int)status, minrnn_last_error());
    exit(1);
}

static void *room(size_t count, size_t size)
{
    void *memory = calloc(count > 0 ? count : 1, size);
    if (memory == NULL) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    return memory;
}

static void continue_text(const minrnn_model *model, const char *prompt)
{
    size_t n_logits = minrnn_model_size(model, MINRNN_SIZE_OUTPUTS);
    size_t n_tokens = 0, capacity = strlen(prompt) + 1;
    uint32_t *tokens = room(capacity, sizeof *tokens);
    float *logits = room(n_logits, sizeof *logits);
    minrnn_session *session;
    minrnn_sampler *sampler;
    minrnn_text *text;

    check(minrnn_session_new(model, 1, &session));
    check(minrnn_text_new(model, &text));
    check(minrnn_sampler_new(SEED, &sampler));
    check(minrnn_sampler_set(sampler, MINRNN_SAMPLING_TEMPERATURE, 0.8));
    check(minrnn_sampler_set(sampler, MINRNN_SAMPLING_TOP_K, 40));

    check(minrnn_encode(model, prompt, strlen(prompt), tokens, capacity, &n_tokens));
    if (n_tokens == 0) {
        check(minrnn_start_token(model, tokens));
        n_tokens = 1;
    }
    check(minrnn_prefill_tokens(session, 0, tokens, n_tokens, logits, n_logits));
    fputs(prompt, stdout);
    for (int i = 0; i < LENGTH; i++) {
        uint32_t token;
        char piece[256];
        size_t length;
        check(minrnn_sampler_sample(sampler, logits, n_logits, NULL, 0, &token));
        check(minrnn_text_decode(text, token, piece, sizeof piece, &length));
        fwrite(piece, 1, length, stdout);
        fflush(stdout);
        check(minrnn_step_tokens(session, NULL, 0, &token, 1, logits, n_logits));
    }
    putchar('\n');

    check(minrnn_sampler_free(sampler));
    check(minrnn_text_free(text));
    check(minrnn_session_free(session));
    free(logits);
    free(tokens);
}

/* The numbers of a line, at most `capacity`; how many there are, or one more
 * than that where there are too many or one is none. */
static size_t parse(char *line, double *values, size_t capacity)
{
    size_t n = 0;
    for (char *cell = strtok(line, ", \t\r\n"); cell != NULL; cell = strtok(NULL, ", \t\r\n")) {
        char *end;
        if (n == capacity)
            return capacity + 1;
        values[n++] = strtod(cell, &end);
        if (*end != '\0')
            return capacity + 1;
    }
    return n;
}

static void answer_rows(const minrnn_model *model)
{
    size_t n_columns = minrnn_model_size(model, MINRNN_SIZE_COLUMNS);
    size_t n_predictions = minrnn_model_size(model, MINRNN_SIZE_PREDICTIONS);
    double *values = room(n_columns, sizeof *values);
    double *predictions = room(n_predictions, sizeof *predictions);
    minrnn_session *session;
    char line[1 << 16];

    check(minrnn_session_new(model, 1, &session));
    while (fgets(line, sizeof line, stdin) != NULL) {
        if (parse(line, values, n_columns) != n_columns) {
            fprintf(stderr, "expected a line of %zu numbers:", n_columns);
            for (size_t i = 0; i < n_columns; i++)
                fprintf(stderr, " %s", minrnn_model_name(model, MINRNN_SIZE_COLUMNS, i));
            fputc('\n', stderr);
            exit(1);
        }
        check(minrnn_table_step(session, NULL, 0, values, n_columns, predictions, n_predictions));
        for (size_t i = 0; i < n_predictions; i++) {
            const char *name = NULL;
            if (minrnn_model_kind(model) == MINRNN_KIND_CLASSIFIER)
                name = minrnn_model_name(model, MINRNN_SIZE_CLASSES, i);
            printf("%s%s%s%.6g", i > 0 ? " " : "", name != NULL ? name : "", name != NULL ? "=" : "", predictions[i]);
        }
        putchar('\n');
        fflush(stdout);
    }
    check(minrnn_session_free(session));
    free(predictions);
    free(values);
}

int main(int argc, char **argv)
{
    minrnn_model *model;
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: %s MODEL [PROMPT]\n", argv[0]);
        return 2;
    }
    check(minrnn_model_open(argv[1], &model));
    switch (minrnn_model_kind(model)) {
    case MINRNN_KIND_TEXT:
        continue_text(model, argc > 2 ? argv[2] : "");
        break;
    case MINRNN_KIND_CLASSIFIER:
    case MINRNN_KIND_REGRESSOR:
    case MINRNN_KIND_FORECASTER:
        answer_rows(model);
        break;
    default:
        fprintf(stderr, "%s reads neither text nor rows of a table\n", argv[1]);
        return 1;
    }
    check(minrnn_model_free(model));
    return 0;
}
