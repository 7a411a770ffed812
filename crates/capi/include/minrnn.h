/*
 * minrnn: recurrent sequence models, run step by step.
 *
 * A model is loaded from one packed file (made by `minrnn pack`). Its sessions
 * hold the state of one or many sequences, one row each. A step reads tokens,
 * numbers, or rows of a table, and writes the model's predictions.
 *
 *     minrnn_model *model;
 *     minrnn_session *session;
 *     if (minrnn_model_open("text.minrnn", &model) != MINRNN_OK
 *         || minrnn_session_new(model, 1, &session) != MINRNN_OK)
 *         fprintf(stderr, "%s\n", minrnn_last_error());
 *
 * Errors. A function that returns minrnn_status returns MINRNN_OK or the kind
 * of error; one that returns a value returns 0, NULL or NaN on error.
 * minrnn_last_error() then describes the error in a sentence. A failed call
 * has changed nothing, with one exception: if the model's prediction is not
 * finite, minrnn_table_step() has still read its rows.
 *
 * Handles are names, not addresses: a handle that is NULL, was freed, or is of
 * another kind is refused. Memory checkers report what is never freed as still
 * reachable.
 *
 * Buffers are the caller's; their lengths count elements. They must not
 * overlap, nor may pointers to results point into them. NULL is allowed for a
 * length of 0. A non-NULL pointer to fewer elements than stated cannot be
 * detected.
 *
 * Threads. All functions may be called from any thread. A model may be used by
 * many threads at once; a session, sampler or text by one: a second call
 * during the first gets MINRNN_BUSY. Error messages are kept per thread. A
 * session runs on the calling thread alone, and its steps allocate nothing
 * once its state has stopped growing (with most models from the first step);
 * minrnn_session_threads() lets it use more.
 *
 * Strings are UTF-8.
 */
#ifndef MINRNN_H
#define MINRNN_H

#include <stddef.h>
#include <stdint.h>

#define MINRNN_VERSION_MAJOR 0
#define MINRNN_VERSION_MINOR 1
#define MINRNN_VERSION_PATCH 0

#if defined(_WIN32) && !defined(MINRNN_STATIC)
#define MINRNN_API __declspec(dllimport)
#else
#define MINRNN_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct minrnn_model minrnn_model;
typedef struct minrnn_session minrnn_session;
typedef struct minrnn_sampler minrnn_sampler;
typedef struct minrnn_text minrnn_text;

/* The result of a call. */
typedef int32_t minrnn_status;
enum {
    MINRNN_OK = 0,
    MINRNN_POINTER = 1,  /* a pointer is NULL or misaligned, or buffers overlap */
    MINRNN_HANDLE = 2,   /* a handle that was freed, or is of another kind */
    MINRNN_BUSY = 3,     /* another thread is using the handle */
    MINRNN_LENGTH = 4,   /* a buffer has the wrong length */
    MINRNN_INPUT = 5,    /* an invalid number, logit, token, text, row or setting */
    MINRNN_KIND = 6,     /* the model does not support this */
    MINRNN_FILE = 7,     /* a file could not be read */
    MINRNN_MODEL = 8,    /* the packed model is damaged or of an unknown version, or its prediction is not finite */
    MINRNN_STATE = 9,    /* a saved session is damaged or of another model, or the session cannot be saved */
    MINRNN_MEMORY = 10,  /* not enough memory */
    MINRNN_INTERNAL = 11 /* a bug in the library */
};

/* What a model does. */
enum {
    MINRNN_KIND_TEXT = 1,       /* reads tokens of a text; gives logits of the next token */
    MINRNN_KIND_CLASSIFIER = 2, /* reads rows of a table; gives class probabilities */
    MINRNN_KIND_FORECASTER = 3, /* reads rows of a table; gives the values of the next steps */
    MINRNN_KIND_POLICY = 4,     /* reads [return to go | observation | previous action | time]; gives an action */
    MINRNN_KIND_TOKENS = 5,     /* reads tokens, without a tokenizer; gives logits */
    MINRNN_KIND_VALUES = 6,     /* reads numbers; gives numbers or logits of classes */
    MINRNN_KIND_REGRESSOR = 7   /* reads rows of a table; gives a number for the sequence */
};

/* Sizes of a model, for minrnn_model_size(). Those that do not apply are 0. */
enum {
    MINRNN_SIZE_VOCAB = 0,        /* size of the vocabulary */
    MINRNN_SIZE_INPUTS = 1,       /* numbers read at a step */
    MINRNN_SIZE_OUTPUTS = 2,      /* numbers given after a step */
    MINRNN_SIZE_PARAMETERS = 3,   /* trainable parameters */
    MINRNN_SIZE_COLUMNS = 4,      /* columns of a table that the model reads; they have names */
    MINRNN_SIZE_CLASSES = 5,      /* classes; they have names */
    MINRNN_SIZE_TARGETS = 6,      /* columns that the model predicts; they have names */
    MINRNN_SIZE_HORIZON = 7,      /* forecast steps ahead */
    MINRNN_SIZE_QUANTILES = 8,    /* quantiles of each forecast value; 0: the mean only */
    MINRNN_SIZE_PREDICTIONS = 9,  /* numbers that minrnn_table_step() gives for a row */
    MINRNN_SIZE_MAY_MISS = 10,    /* 1 if numbers of a row may be missing (NaN) */
    MINRNN_SIZE_STEPS_SEEN = 11,  /* steps after which a session stops growing; 0: it never grows */
    MINRNN_SIZE_GROUPS = 12       /* 1 if a column says which sequence a row belongs to; it has a name */
};

/* Sizes of a session, for minrnn_session_size(). */
enum {
    MINRNN_SESSION_ROWS = 0, /* sequences it holds */
    MINRNN_SESSION_BYTES = 1 /* bytes they use */
};

/* Settings of a sampler, for minrnn_sampler_set(), in the order in which they
 * apply. */
enum {
    MINRNN_SAMPLING_REPETITION_PENALTY = 4, /* divides positive logits of recent tokens and multiplies negative ones; default 1: off */
    MINRNN_SAMPLING_TEMPERATURE = 0,        /* divides the logits; 0: the most likely token; default 1 */
    MINRNN_SAMPLING_TOP_K = 1,              /* only the k most likely tokens; default 0: off */
    MINRNN_SAMPLING_TOP_P = 2,              /* only the most likely tokens that together reach this probability; default 1: off */
    MINRNN_SAMPLING_MIN_P = 3               /* only tokens at least this probable relative to the most likely; default 0: off */
};

/* All rows of a session, for minrnn_session_reset(). */
#define MINRNN_ALL_ROWS SIZE_MAX

/* --- The library ------------------------------------------------------- */

/* The version, such as "0.1.0". */
MINRNN_API const char *minrnn_version(void);

/* The error message of this thread's last failed call, "" before the first. The
 * text is valid until this thread's next call: copy it to keep it longer, and
 * do not ask for it beside another call in one expression, where either may
 * come first. */
MINRNN_API const char *minrnn_last_error(void);

/* --- Models ------------------------------------------------------------ */

/* Loads the packed model in the file `path`. Its matrices stay in the memory
 * that the file was read into. (Not in WebAssembly, which has no files.) */
MINRNN_API minrnn_status minrnn_model_open(const char *path, minrnn_model **out);

/* Loads a packed model from the bytes of its file. They are copied and may be
 * freed as soon as this returns. */
MINRNN_API minrnn_status minrnn_model_from_memory(const uint8_t *bytes, size_t len, minrnn_model **out);

/* Frees a model. Its sessions and texts remain usable, and calls of other
 * threads that use it continue: it is never MINRNN_BUSY. Its memory is released
 * with the last of them. Freeing NULL does nothing, here and in all functions
 * that free. */
MINRNN_API minrnn_status minrnn_model_free(minrnn_model *model);

/* A MINRNN_KIND_; 0 on error. */
MINRNN_API int32_t minrnn_model_kind(const minrnn_model *model);

/* A size, by its MINRNN_SIZE_; 0 on error. */
MINRNN_API size_t minrnn_model_size(const minrnn_model *model, int32_t what);

/* Bytes of a session's row once it has read `steps` steps: constant, except for
 * models with attention or long filters. */
MINRNN_API size_t minrnn_model_session_bytes(const minrnn_model *model, size_t steps);

/* The name of one of the MINRNN_SIZE_COLUMNS, _CLASSES, _TARGETS or _GROUPS,
 * counted from 0; NULL on error. It is valid as long as the model. */
MINRNN_API const char *minrnn_model_name(const minrnn_model *model, int32_t what, size_t index);

/* The number of names that column `column` of the MINRNN_SIZE_COLUMNS
 * distinguishes; 0 if it holds numbers, or on error. */
MINRNN_API size_t minrnn_column_names(const minrnn_model *model, size_t column);

/* The name with code `code` in a column of names, counted from 0; NULL on
 * error. It is valid as long as the model. */
MINRNN_API const char *minrnn_column_name(const minrnn_model *model, size_t column, size_t code);

/* The code of `name` in a column of names, for minrnn_table_step(): an integer
 * from 0, or -1 if training never saw the name. Surrounding blanks are ignored;
 * otherwise the name must be written as by minrnn_column_name(): "1.0" is not
 * "1". A missing name is given as NaN. The names of a column derived from
 * times, such as "date.month", are its numbers: "1" is January, or Monday. */
MINRNN_API minrnn_status minrnn_column_code(const minrnn_model *model, size_t column, const char *name, double *code);

/* The level of a quantile, between 0 and 1, in ascending order; NaN on error. */
MINRNN_API double minrnn_model_quantile(const minrnn_model *model, size_t index);

/* The surprise that a share `share`, such as 0.999, of the rows held out in
 * training did not exceed, for minrnn_table_surprise(): a row above it is
 * unusual. NaN on error, and for a model that does not know. */
MINRNN_API double minrnn_model_threshold(const minrnn_model *model, double share);

/* --- Sessions ---------------------------------------------------------- */

/* Starts `rows` independent sequences. */
MINRNN_API minrnn_status minrnn_session_new(const minrnn_model *model, size_t rows, minrnn_session **out);

/* Copies all rows into a new, independent session. */
MINRNN_API minrnn_status minrnn_session_fork(const minrnn_session *session, minrnn_session **out);

MINRNN_API minrnn_status minrnn_session_free(minrnn_session *session);

/* Resets a row, or all with MINRNN_ALL_ROWS. */
MINRNN_API minrnn_status minrnn_session_reset(minrnn_session *session, size_t row);

/* Replaces a row by a row of `source`, which may be the same session. If memory
 * cannot hold the copy, the row stays as it was. */
MINRNN_API minrnn_status minrnn_session_copy_row(minrnn_session *session, size_t row, const minrnn_session *source,
                                                 size_t source_row);

/* A size, by its MINRNN_SESSION_; 0 on error. */
MINRNN_API size_t minrnn_session_size(const minrnn_session *session, int32_t what);

/* Lets steps use up to `threads` threads; 0: one for each core. With more than
 * one, threads are started at the first step that is worth it, and a step
 * allocates a little. If the system cannot start any, and in a child of fork(),
 * which has none of its parent's threads, steps run on the calling thread
 * alone. */
MINRNN_API minrnn_status minrnn_session_threads(minrnn_session *session, size_t threads);

/* Writes the whole state of a session. `*len` is the number of bytes, even if
 * `capacity` is 0 or too small. A row whose state is not finite cannot be
 * saved: MINRNN_STATE, with a message that names it; reset it. `minrnn stream
 * --load-state` reads these bytes, too: a session with one row of a table
 * without MINRNN_SIZE_GROUPS is its only sequence; rows of other tables are the
 * sequences "0", "1" and so on. */
MINRNN_API minrnn_status minrnn_session_save(const minrnn_session *session, uint8_t *buffer, size_t capacity, size_t *len);

/* A session restored from such bytes, which must be of exactly this model. */
MINRNN_API minrnn_status minrnn_session_restore(const minrnn_model *model, const uint8_t *bytes, size_t len,
                                                minrnn_session **out);

/* --- Steps ------------------------------------------------------------- */

/* `rows`, if given, must be ascending, and the other rows stay as they are;
 * NULL and 0 stand for all rows. Buffers hold the first row's data, then the
 * second's and so on.
 *
 * minrnn_step_, minrnn_prefill_ and minrnn_forward_ write whatever the model
 * computes: weights or inputs that are too large may give NaN or infinities
 * with MINRNN_OK. Such a row gives no finite numbers, and cannot be saved,
 * until it is reset. */

/* Reads a token for each row; writes MINRNN_SIZE_OUTPUTS logits for each. */
MINRNN_API minrnn_status minrnn_step_tokens(minrnn_session *session, const size_t *rows, size_t n_rows, const uint32_t *tokens,
                                            size_t n_tokens, float *outputs, size_t n_outputs);

/* Reads MINRNN_SIZE_INPUTS numbers for each row, as the model sees them (for a
 * table's own units use minrnn_table_step()); writes MINRNN_SIZE_OUTPUTS
 * numbers for each. */
MINRNN_API minrnn_status minrnn_step_values(minrnn_session *session, const size_t *rows, size_t n_rows, const float *values,
                                            size_t n_values, float *outputs, size_t n_outputs);

/* Reads a prompt into one row in one pass, which is faster than steps; writes
 * the outputs after its last token, or none if `n_outputs` is 0. */
MINRNN_API minrnn_status minrnn_prefill_tokens(minrnn_session *session, size_t row, const uint32_t *tokens, size_t n_tokens,
                                               float *outputs, size_t n_outputs);

/* The same for steps of numbers. */
MINRNN_API minrnn_status minrnn_prefill_values(minrnn_session *session, size_t row, const float *values, size_t n_values,
                                               float *outputs, size_t n_outputs);

/* Reads tokens into the only row of a session; writes the outputs after every
 * token, as needed for the likelihood of a text. */
MINRNN_API minrnn_status minrnn_forward_tokens(minrnn_session *session, const uint32_t *tokens, size_t n_tokens, float *outputs,
                                               size_t n_outputs);

/* The same for steps of numbers. */
MINRNN_API minrnn_status minrnn_forward_values(minrnn_session *session, const float *values, size_t n_values, float *outputs,
                                               size_t n_outputs);

/* --- Tables ------------------------------------------------------------ */

/* Reads the next row of the table for each row of the session: a number for
 * each of the MINRNN_SIZE_COLUMNS, in the units of the table; for a column of
 * names (minrnn_column_names() is not 0), the code from minrnn_column_code();
 * NaN for a missing number if MINRNN_SIZE_MAY_MISS. Writes
 * MINRNN_SIZE_PREDICTIONS numbers for each: the class probabilities, the number
 * of the sequence, or [steps ahead, targets, quantiles] values, in the units of
 * the table. The predictions are those of `minrnn stream`.
 *
 * If a prediction is not finite, the result is MINRNN_MODEL, but all rows have
 * been read: the predictions of such a row are NaN, those of the others are
 * valid. The message names the first such row; reset it. */
MINRNN_API minrnn_status minrnn_table_step(minrnn_session *session, const size_t *rows, size_t n_rows, const double *values,
                                           size_t n_values, double *predictions, size_t n_predictions);

/* How surprising the next row of the table, given as to minrnn_table_step(),
 * would be for each row of the session: the negative log-likelihood of what came
 * under the forecast after the row before, in nats, as by `minrnn score`. NaN
 * at the beginning of a sequence, where all targets are missing, and after
 * steps of the model's own numbers. Reads nothing: call it before
 * minrnn_table_step(). MINRNN_KIND unless the model forecasts quantiles. */
MINRNN_API minrnn_status minrnn_table_surprise(const minrnn_session *session, const size_t *rows, size_t n_rows,
                                               const double *values, size_t n_values, double *surprises, size_t n_surprises);

/* --- Choosing a token -------------------------------------------------- */

/* A sampler that draws from the model's own distribution. The same seed,
 * settings and logits give the same tokens. */
MINRNN_API minrnn_status minrnn_sampler_new(uint64_t seed, minrnn_sampler **out);

MINRNN_API minrnn_status minrnn_sampler_free(minrnn_sampler *sampler);

/* Changes a setting, by its MINRNN_SAMPLING_. */
MINRNN_API minrnn_status minrnn_sampler_set(minrnn_sampler *sampler, int32_t setting, double value);

/* Chooses a token. The repetition penalty applies to the `recent` tokens and is
 * written into the logits; a logit of -INFINITY masks its token. */
MINRNN_API minrnn_status minrnn_sampler_sample(minrnn_sampler *sampler, float *logits, size_t n_logits, const uint32_t *recent,
                                               size_t n_recent, uint32_t *token);

/* --- Text -------------------------------------------------------------- */

/* The token that stands for an empty prompt: a line break, or else 0. */
MINRNN_API minrnn_status minrnn_start_token(const minrnn_model *model, uint32_t *token);

/* The tokens of a text of `len` bytes. `*n_tokens` is their number, even if
 * `capacity` is 0 or too small; it never exceeds `len`, except for vocabularies
 * that rewrite a text. A byte vocabulary accepts any bytes. */
MINRNN_API minrnn_status minrnn_encode(const minrnn_model *model, const char *text, size_t len, uint32_t *tokens, size_t capacity,
                                       size_t *n_tokens);

/* The bytes of tokens, without a terminating zero byte. They may begin or end
 * inside a character. `*len` is their number, even if `capacity` is 0 or too
 * small. */
MINRNN_API minrnn_status minrnn_decode(const minrnn_model *model, const uint32_t *tokens, size_t n_tokens, char *text,
                                       size_t capacity, size_t *len);

/* A text stream: encodes text and decodes tokens piece by piece, independently
 * of each other. */
MINRNN_API minrnn_status minrnn_text_new(const minrnn_model *model, minrnn_text **out);

MINRNN_API minrnn_status minrnn_text_free(minrnn_text *text);

/* Resets both directions, dropping what is pending. */
MINRNN_API minrnn_status minrnn_text_reset(minrnn_text *text);

/* The tokens that the next bytes complete, wherever the text is cut: what
 * cannot be encoded yet stays pending, unless these are the `last` bytes (not
 * 0). If the call fails, for example for lack of room, the bytes were not
 * taken; if pending bytes are the cause, because a later call completed them to
 * something that is not in the vocabulary, minrnn_text_reset() drops them. */
MINRNN_API minrnn_status minrnn_text_encode(minrnn_text *text, const char *bytes, size_t len, int32_t last, uint32_t *tokens,
                                            size_t capacity, size_t *n_tokens);

/* The whole characters that a token completes, without a terminating zero byte;
 * bytes that cannot form a character become U+FFFD. If the call fails, for
 * example for lack of room, the token was not taken. */
MINRNN_API minrnn_status minrnn_text_decode(minrnn_text *text, uint32_t token, char *bytes, size_t capacity, size_t *len);

#if defined(__wasm__)
/* --- Memory for a host without one in common --------------------------- */

/* Memory aligned for any number, or NULL. */
uint8_t *minrnn_alloc(size_t len);

/* Frees it, with the length that was asked for. */
void minrnn_dealloc(uint8_t *memory, size_t len);
#endif

#ifdef __cplusplus
}
#endif

#endif
