/** minrnn's inference runtime in a browser, a worker or node: packed models (`minrnn pack`), run step by step. */

/** The error of a failed call. The message says what was wrong, what was expected, and what to do. */
export class MinrnnError extends Error {
  /** A `minrnn_status` of the C header; undefined if the module itself could not be loaded. */
  readonly status?: number;
}

export interface LoadOptions {
  /** The module: its URL, its bytes, or compiled. Default: `minrnn.wasm` beside `minrnn.js`. */
  wasm?: string | URL | Response | BufferSource | WebAssembly.Module;
}

/**
 * Loads a packed model. Each model has its own instance of the module, with its own memory.
 * @throws {MinrnnError} if the file is damaged or of an unknown version
 */
export function load(bytes: BufferSource, options?: LoadOptions): Promise<Model>;

/** What a model reads at every step. */
export type Reads = { kind: "tokens"; vocab: number } | { kind: "values"; width: number };

/** The table that a model was trained on: the columns it reads and predicts, and the one that says which sequence a row belongs to. */
export type Table = { columns: string[]; target: string[]; group: string | null; /** Whether a number may be NaN. */ mayMiss: boolean } & (
  | { task: "classify"; classes: string[] }
  | { task: "regress" }
  | { task: "forecast"; horizon: number; quantiles: number[] }
);

/** Sampling settings. By default: the model's own distribution, seed 0. */
export interface Sampling {
  /** Divides the logits; 0 takes the most likely token. Default 1. */
  temperature?: number;
  /** Only the `topK` most likely tokens; 0 (default): all. */
  topK?: number;
  /** Only the most likely tokens that together reach this probability. Default 1: all. */
  topP?: number;
  /** Only tokens at least this many times as probable as the most likely one. Default 0: all. */
  minP?: number;
  /** Makes the latest 64 tokens less likely. Default 1: off. */
  repetitionPenalty?: number;
  /** The same seed gives the same choices. Default 0. */
  seed?: number | bigint;
}

/** A trained model. Everything made from it is usable until `free`. */
export interface Model {
  readonly kind: "text" | "classifier" | "forecaster" | "policy" | "tokens" | "values" | "regressor";
  readonly reads: Reads;
  /** Number of outputs after a step: logits of tokens or classes, or values. */
  readonly outputs: number;
  readonly parameters: number;
  /** Bytes of a session that has read nothing. */
  readonly sessionBytes: number;
  /** Whether the file has a vocabulary, so that `encode`, `decode` and `generate` work. */
  readonly hasText: boolean;
  readonly table: Table | null;
  /**
   * The surprise in nats that a share `share` (default 0.999) of the rows held out in training did not exceed; see `Session.surprise`. An error for a
   * model that does not know it.
   */
  threshold(share?: number): number;
  /** Starts `rows` new sequences (default 1). */
  session(rows?: number): Session;
  /** Restores what `Session.save`, C's `minrnn_session_save` or `minrnn stream --save-state` saved for this model. */
  restore(bytes: BufferSource): Session;
  encode(text: string): Uint32Array;
  decode(tokens: Iterable<number>): string;
  sampler(settings?: Sampling): Sampler;
  decoder(): Decoder;
  /** Frees the model, its sessions and their memory. */
  free(): void;
}

/** A model's state for one or several sequences, each a row. */
export interface Session {
  readonly model: Model;
  readonly rows: number;
  /** Memory in use. */
  readonly bytes: number;
  /**
   * Reads one step for every row, or for the given `rows` (ascending), and returns the outputs after it, `[rows, outputs]`.
   * A step is a token, or `reads.width` numbers as the model sees them.
   */
  step(given: number | ArrayLike<number>, rows?: ArrayLike<number>): Float32Array;
  /** Reads many steps into one row in one pass and returns the outputs after the last, `[outputs]`. */
  prefill(given: ArrayLike<number>, row?: number): Float32Array;
  /** Reads many steps into the only row and returns the outputs after each, `[steps, outputs]`. */
  forward(given: ArrayLike<number>): Float32Array;
  /**
   * Reads the next row of a table, in the table's units (NaN, null or undefined for a missing number), for every row or the given ones, and returns the
   * class probabilities, the number of the sequence, or the values of the next steps `[horizon, targets, quantiles]`.
   */
  row(values: ArrayLike<number | null | undefined>, rows?: ArrayLike<number>): Float64Array;
  /**
   * How surprising the next row of a table, given as to `row` before it is read, is to a forecaster with quantiles, in nats, for every row or the given
   * ones; NaN at the beginning of a sequence and where all targets are missing. A row above `Model.threshold` is unusual.
   */
  surprise(values: ArrayLike<number | null | undefined>, rows?: ArrayLike<number>): Float64Array;
  /** Reads the prompt (if it is empty, the token that starts a text), then generates token by token; each token has already been read when it is yielded. */
  generate(prompt?: string, options?: Sampling & { limit?: number }): Generator<{ token: number; text: string }, void, void>;
  /** An independent copy. */
  fork(): Session;
  save(): Uint8Array;
  /** Resets one row, or all. */
  reset(row?: number): void;
  free(): void;
}

/** Chooses tokens from logits. */
export interface Sampler {
  /** `recent`: the tokens that the repetition penalty applies to. */
  sample(logits: ArrayLike<number>, recent?: ArrayLike<number>): number;
  free(): void;
}

/** Turns tokens into text as they come. */
export interface Decoder {
  /** The whole characters that the token completes. */
  push(token: number): string;
  free(): void;
}
