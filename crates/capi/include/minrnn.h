/*
 * minrnn: recurrent sequence models, run step by step.
 *
 * A model is loaded from one packed file (made by `minrnn pack`). Sessions of
 * it remember one or many sequences, a row for each. Steps read tokens,
 * numbers, or rows of a table, and write what the model expects next.
 *
 *     minrnn_model *model;
 *     minrnn_session *session;
 *     if (minrnn_model_open("text.minrnn", &model) != MINRNN_OK
 *         || minrnn_session_new(model, 1, &session) != MINRNN_OK)
 *         fprintf(stderr, "%s\n", minrnn_last_error());
 *
 * Errors. A function that answers minrnn_status gives MINRNN_OK or says why
 * not; one that answers a value gives 0, NULL or NaN where it is refused. Then
 * minrnn_last_error() is a sentence about it. A call that is refused has
 * changed nothing, unless it is said here: minrnn_table_step() with a model
 * that predicts what is no number has read its rows.
 *
 * Handles are names, not addresses: one that is NULL, was freed, or is of
 * another kind is refused. Memory checkers see what is never freed as still
 * reachable.
 *
 * Buffers are the caller's, with their length in elements. They must not
 * overlap, nor must places of results lie in them. NULL is good where there are no elements. A pointer that is not
 * NULL and does not lead to as many elements cannot be told from a good one.
 *
 * Threads. All functions may be called from any thread. A model may be used by
 * many threads at once; of a session, a sampler or a text MINRNN_BUSY tells a
 * second call that comes while one is at work. The sentence of a refusal is
 * that of the calling thread. A session takes the calling thread alone, and its
 * steps allocate nothing once what it keeps has stopped growing (with most
 * models from the first on); minrnn_session_threads() lets it take more.
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

/* What a call answers. */
typedef int32_t minrnn_status;
enum {
    MINRNN_OK = 0,
    MINRNN_POINTER = 1,  /* a pointer is NULL or misaligned, or buffers overlap */
    MINRNN_HANDLE = 2,   /* a handle that was freed, or is of another kind */
    MINRNN_BUSY = 3,     /* another thread uses the handle */
    MINRNN_LENGTH = 4,   /* a buffer has another length than is needed */
    MINRNN_INPUT = 5,    /* a number, logit, token, text, row or setting that cannot be used */
    MINRNN_KIND = 6,     /* the model does not do such a thing */
    MINRNN_FILE = 7,     /* a file could not be read */
    MINRNN_MODEL = 8,    /* the packed model is damaged or of an unknown version, or gives what is no number */
    MINRNN_STATE = 9,    /* a saved session that is damaged or of another model, or one that cannot be saved */
    MINRNN_MEMORY = 10,  /* memory cannot hold it */
    MINRNN_INTERNAL = 11 /* a flaw of the library */
};

/* What a model is for. */
enum {
    MINRNN_KIND_TEXT = 1,       /* reads tokens of a text; gives logits of the next */
    MINRNN_KIND_CLASSIFIER = 2, /* reads rows of a table; gives the probability of each class */
    MINRNN_KIND_FORECASTER = 3, /* reads rows of a table; gives the values of the next steps */
    MINRNN_KIND_POLICY = 4,     /* reads [return to go | observation | action before | time]; gives an action */
    MINRNN_KIND_TOKENS = 5,     /* reads tokens, without a tokenizer; gives logits */
    MINRNN_KIND_VALUES = 6,     /* reads numbers; gives numbers or logits of classes */
    MINRNN_KIND_REGRESSOR = 7   /* reads rows of a table; gives the number of the sequence */
};

/* Sizes of a model, for minrnn_model_size(). Those that it has not are 0. */
enum {
    MINRNN_SIZE_VOCAB = 0,        /* tokens that it knows */
    MINRNN_SIZE_INPUTS = 1,       /* numbers that it reads at a step */
    MINRNN_SIZE_OUTPUTS = 2,      /* numbers that it gives after a step */
    MINRNN_SIZE_PARAMETERS = 3,   /* weights that were trained */
    MINRNN_SIZE_COLUMNS = 4,      /* columns of a table that it reads; also their names */
    MINRNN_SIZE_CLASSES = 5,      /* classes; also their names */
    MINRNN_SIZE_TARGETS = 6,      /* columns that it predicts; also their names */
    MINRNN_SIZE_HORIZON = 7,      /* steps ahead of a forecast */
    MINRNN_SIZE_QUANTILES = 8,    /* quantiles of each value of a forecast; 0: its mean alone */
    MINRNN_SIZE_PREDICTIONS = 9,  /* numbers that minrnn_table_step() gives for a row */
    MINRNN_SIZE_MAY_MISS = 10,    /* 1 where numbers of a row may be missing, which is NaN */
    MINRNN_SIZE_STEPS_SEEN = 11,  /* steps after which a session has stopped growing; 0: it never grows */
    MINRNN_SIZE_GROUPS = 12       /* 1 where a column says which sequence a row belongs to; also its name */
};

/* Sizes of a session, for minrnn_session_size(). */
enum {
    MINRNN_SESSION_ROWS = 0, /* sequences that it remembers */
    MINRNN_SESSION_BYTES = 1 /* bytes that these take */
};

/* Settings of a sampler, for minrnn_sampler_set(), in the order in which they act. */
enum {
    MINRNN_SAMPLING_REPETITION_PENALTY = 4, /* divides positive logits of recent tokens and multiplies negative ones; 1: off, as at first */
    MINRNN_SAMPLING_TEMPERATURE = 0,        /* divides the logits; 0: the likeliest token; 1 at first */
    MINRNN_SAMPLING_TOP_K = 1,              /* only the k likeliest tokens; 0: off, as at first */
    MINRNN_SAMPLING_TOP_P = 2,              /* only the likeliest tokens that reach this probability; 1: off, as at first */
    MINRNN_SAMPLING_MIN_P = 3               /* only tokens at least this probable relative to the likeliest; 0: off, as at first */
};

/* All rows of a session, for minrnn_session_reset(). */
#define MINRNN_ALL_ROWS SIZE_MAX

/* --- The library ------------------------------------------------------- */

/* Its version, such as "0.1.0". */
MINRNN_API const char *minrnn_version(void);

/* The sentence of the last call of this thread that was refused, "" before the
 * first. Its text lives until this thread's next call: copy what is kept for
 * longer, and do not ask for it beside another call in one expression, where
 * either may come first. */
MINRNN_API const char *minrnn_last_error(void);

/* --- Models ------------------------------------------------------------ */

/* Loads the packed model in the file `path`. Its matrices stay in the memory
 * that the file was read into. (Not in WebAssembly, which has no files.) */
MINRNN_API minrnn_status minrnn_model_open(const char *path, minrnn_model **out);

/* Loads the packed model whose file has these bytes. They are copied, and may
 * go as soon as this returns. */
MINRNN_API minrnn_status minrnn_model_from_memory(const uint8_t *bytes, size_t len, minrnn_model **out);

/* Frees a model. Sessions and texts of it go on, and so do calls of other
 * threads that use it: it is never MINRNN_BUSY. Its memory goes with the last
 * of them. Nothing happens to NULL, here and with all that free. */
MINRNN_API minrnn_status minrnn_model_free(minrnn_model *model);

/* A MINRNN_KIND_; 0 where it is refused. */
MINRNN_API int32_t minrnn_model_kind(const minrnn_model *model);

/* A size, by its MINRNN_SIZE_; 0 where it is refused. */
MINRNN_API size_t minrnn_model_size(const minrnn_model *model, int32_t what);

/* Bytes that a row of a session takes once it has read `steps`: always the
 * same, but for models with attention or long filters. */
MINRNN_API size_t minrnn_model_session_bytes(const minrnn_model *model, size_t steps);

/* The name of one of the MINRNN_SIZE_COLUMNS, _CLASSES or _TARGETS, counted
 * from 0; NULL where it is refused. It stays as long as the model. */
MINRNN_API const char *minrnn_model_name(const minrnn_model *model, int32_t what, size_t index);

/* How many names the column `column` of the MINRNN_SIZE_COLUMNS tells apart; 0
 * where it holds numbers, or where it is refused. */
MINRNN_API size_t minrnn_column_names(const minrnn_model *model, size_t column);

/* The name that `code` stands for in a column of names, counted from 0; NULL
 * where it is refused. It stays as long as the model. */
MINRNN_API const char *minrnn_column_name(const minrnn_model *model, size_t column, size_t code);

/* What stands for `name` in a column of names, for minrnn_table_step(): a whole
 * number from 0, or -1 where training never saw the name. Blanks around it do
 * not count; else it is known as minrnn_column_name() writes it, so that "1.0"
 * is not "1". A name that is missing is given as NaN. The names of a column
 * made of times, such as "date.month", are its numbers: "1" is January, or
 * Monday. */
MINRNN_API minrnn_status minrnn_column_code(const minrnn_model *model, size_t column, const char *name, double *code);

/* The level of a quantile, between 0 and 1, rising; NaN where it is refused. */
MINRNN_API double minrnn_model_quantile(const minrnn_model *model, size_t index);

/* --- Sessions ---------------------------------------------------------- */

/* Begins `rows` sequences, independent of each other. */
MINRNN_API minrnn_status minrnn_session_new(const minrnn_model *model, size_t rows, minrnn_session **out);

/* Copies all rows: the copy and the original go on apart. */
MINRNN_API minrnn_status minrnn_session_fork(const minrnn_session *session, minrnn_session **out);

MINRNN_API minrnn_status minrnn_session_free(minrnn_session *session);

/* Begins a row anew, or MINRNN_ALL_ROWS. */
MINRNN_API minrnn_status minrnn_session_reset(minrnn_session *session, size_t row);

/* Replaces a row by a row of `source`, which may be the same session. Where
 * memory cannot hold the copy the row stays as it was. */
MINRNN_API minrnn_status minrnn_session_copy_row(minrnn_session *session, size_t row, const minrnn_session *source,
                                                 size_t source_row);

/* A size, by its MINRNN_SESSION_; 0 where it is refused. */
MINRNN_API size_t minrnn_session_size(const minrnn_session *session, int32_t what);

/* Lets steps take up to `threads` threads; 0: as many as there are cores. With
 * more than one, threads are started at the first step that is worth it, and a
 * step allocates a little. Where the system starts none, and in a child of
 * fork(), where those of the parent are not there, steps take the calling
 * thread alone. */
MINRNN_API minrnn_status minrnn_session_threads(minrnn_session *session, size_t threads);

/* Writes all that a session remembers. `*len` is the number of bytes, also
 * where `capacity` is 0 or too small. A row that has come to what is no number
 * cannot be saved: MINRNN_STATE, with a sentence that names it; reset it.
 * `minrnn stream --load-state` reads the bytes, too: those of one row of a
 * table without a MINRNN_SIZE_GROUPS as its only sequence; rows of other tables
 * are the sequences "0", "1" and so on there. */
MINRNN_API minrnn_status minrnn_session_save(const minrnn_session *session, uint8_t *buffer, size_t capacity, size_t *len);

/* A session that goes on from such bytes, which must be of this very model. */
MINRNN_API minrnn_status minrnn_session_restore(const minrnn_model *model, const uint8_t *bytes, size_t len,
                                                minrnn_session **out);

/* --- Steps ------------------------------------------------------------- */

/* Where `rows` are given, they rise and the others stay as they are; NULL and 0
 * stand for all. Buffers have what belongs to the first row, then to the second
 * and so on.
 *
 * What minrnn_step_, minrnn_prefill_ and minrnn_forward_ write is what the model
 * gives, whatever it is: weights or numbers that are too large may lead to NaN
 * or infinities with MINRNN_OK. A row that has come to such gives no numbers any
 * more, and cannot be saved, until it is reset. */

/* Reads a token of each row; writes MINRNN_SIZE_OUTPUTS logits for each. */
MINRNN_API minrnn_status minrnn_step_tokens(minrnn_session *session, const size_t *rows, size_t n_rows, const uint32_t *tokens,
                                            size_t n_tokens, float *outputs, size_t n_outputs);

/* Reads MINRNN_SIZE_INPUTS numbers of each row, as the model sees them (those
 * of a table are minrnn_table_step()'s); writes MINRNN_SIZE_OUTPUTS for each. */
MINRNN_API minrnn_status minrnn_step_values(minrnn_session *session, const size_t *rows, size_t n_rows, const float *values,
                                            size_t n_values, float *outputs, size_t n_outputs);

/* Reads a prompt into one row, all at once, which is faster than steps; writes
 * the outputs after its last token, or none where `n_outputs` is 0. */
MINRNN_API minrnn_status minrnn_prefill_tokens(minrnn_session *session, size_t row, const uint32_t *tokens, size_t n_tokens,
                                               float *outputs, size_t n_outputs);

/* The same of steps of numbers. */
MINRNN_API minrnn_status minrnn_prefill_values(minrnn_session *session, size_t row, const float *values, size_t n_values,
                                               float *outputs, size_t n_outputs);

/* Reads tokens into the only row of a session; writes the outputs after every
 * one, as the likelihood of a text needs them. */
MINRNN_API minrnn_status minrnn_forward_tokens(minrnn_session *session, const uint32_t *tokens, size_t n_tokens, float *outputs,
                                               size_t n_outputs);

/* The same of steps of numbers. */
MINRNN_API minrnn_status minrnn_forward_values(minrnn_session *session, const float *values, size_t n_values, float *outputs,
                                               size_t n_outputs);

/* --- Tables ------------------------------------------------------------ */

/* Reads the next row of the table of each row of the session: a number for each
 * of the MINRNN_SIZE_COLUMNS, in the units of the table; in a column of names,
 * which has minrnn_column_names(), what minrnn_column_code() says of the name;
 * NaN where it is missing and MINRNN_SIZE_MAY_MISS. Writes
 * MINRNN_SIZE_PREDICTIONS numbers for each: the probability of each class; or
 * [steps ahead, targets, quantiles] values in the units of the table. What it
 * says is what `minrnn stream` says.
 *
 * Where the model predicts what is no number the answer is MINRNN_MODEL, and all
 * rows have been read nevertheless: the predictions of such a row are NaN, those
 * of the others are there. The sentence names the first; reset it. */
MINRNN_API minrnn_status minrnn_table_step(minrnn_session *session, const size_t *rows, size_t n_rows, const double *values,
                                           size_t n_values, double *predictions, size_t n_predictions);

/* --- Choosing a token -------------------------------------------------- */

/* A sampler that draws from the model's own distribution. The same seed,
 * settings and logits give the same tokens. */
MINRNN_API minrnn_status minrnn_sampler_new(uint64_t seed, minrnn_sampler **out);

MINRNN_API minrnn_status minrnn_sampler_free(minrnn_sampler *sampler);

/* Changes a setting, by its MINRNN_SAMPLING_. */
MINRNN_API minrnn_status minrnn_sampler_set(minrnn_sampler *sampler, int32_t setting, double value);

/* Chooses a token. The penalty of repetition acts on the `recent` tokens, and
 * is written into the logits; a logit of -INFINITY masks its token. */
MINRNN_API minrnn_status minrnn_sampler_sample(minrnn_sampler *sampler, float *logits, size_t n_logits, const uint32_t *recent,
                                               size_t n_recent, uint32_t *token);

/* --- Text -------------------------------------------------------------- */

/* The token that an empty prompt stands for: a line break, or else 0. */
MINRNN_API minrnn_status minrnn_start_token(const minrnn_model *model, uint32_t *token);

/* The tokens of a text of `len` bytes. `*n_tokens` is their number, also where
 * `capacity` is 0 or too small; it is never above `len` but for vocabularies
 * that rewrite a text. A vocabulary of bytes takes any bytes. */
MINRNN_API minrnn_status minrnn_encode(const minrnn_model *model, const char *text, size_t len, uint32_t *tokens, size_t capacity,
                                       size_t *n_tokens);

/* The bytes of tokens, without a zero byte at the end. They may begin or end
 * inside a character. `*len` is their number, also where `capacity` is 0 or too
 * small. */
MINRNN_API minrnn_status minrnn_decode(const minrnn_model *model, const uint32_t *tokens, size_t n_tokens, char *text,
                                       size_t capacity, size_t *len);

/* A text that comes in and one that goes out, piece by piece. */
MINRNN_API minrnn_status minrnn_text_new(const minrnn_model *model, minrnn_text **out);

MINRNN_API minrnn_status minrnn_text_free(minrnn_text *text);

/* Begins both anew: forgets what waits of the one and of the other. */
MINRNN_API minrnn_status minrnn_text_reset(minrnn_text *text);

/* The tokens that the next bytes complete, wherever these are cut: what cannot
 * be encoded yet waits, unless these are the `last` ones (not 0). Where it is
 * refused, as with too little room, the bytes were not taken; where those that
 * waited before are in the way, which a later call can complete to what the
 * vocabulary does not have, minrnn_text_reset() forgets them. */
MINRNN_API minrnn_status minrnn_text_encode(minrnn_text *text, const char *bytes, size_t len, int32_t last, uint32_t *tokens,
                                            size_t capacity, size_t *n_tokens);

/* The whole characters that a token completes, without a zero byte at the end;
 * what cannot become a character is U+FFFD. Where it is refused, as with too
 * little room, the token was not taken. */
MINRNN_API minrnn_status minrnn_text_decode(minrnn_text *text, uint32_t token, char *bytes, size_t capacity, size_t *len);

#if defined(__wasm__)
/* --- Memory for a host without one in common --------------------------- */

/* Memory aligned for any number, or NULL. */
uint8_t *minrnn_alloc(size_t len);

/* Gives it back, with the length that was asked for. */
void minrnn_dealloc(uint8_t *memory, size_t len);
#endif

#ifdef __cplusplus
}
#endif

#endif
