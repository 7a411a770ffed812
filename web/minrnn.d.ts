/** minrnn's inference runtime in a browser, a worker or node: packed models (`minrnn pack`), run step by step. */

/** A call that was refused. The message says what, what was expected, and what to do. */
export class MinrnnError extends Error {
  /** A `minrnn_status` of the C library's header; undefined where the module itself could not be had. */
  readonly status?: number;
}

export interface LoadOptions {
  /** The module: where it lies, its bytes, or compiled. Default: `minrnn.wasm` beside `minrnn.js`. */
  wasm?: string | URL | Response | BufferSource | WebAssembly.Module;
}

/**
 * Reads a packed model. Each has an instance of the module, and its memory, to itself.
 * @throws {MinrnnError} when the file is damaged or of a version that is not known
 */
export function load(bytes: BufferSource, options?: LoadOptions): Promise<Model>;

/** What stands at every step that a model reads. */
export type Reads = { kind: "tokens"; vocab: number } | { kind: "values"; width: number };

/** The table that a model was trained on: its columns that are read and predicted, and the one that says which sequence a row belongs to. */
export type Table = { columns: string[]; target: string[]; group: string | null; /** Whether a number may be NaN. */ mayMiss: boolean } & (
  | { task: "classify"; classes: string[] }
  | { task: "regress" }
  | { task: "forecast"; horizon: number; quantiles: number[] }
);

/** Where nothing else is said: the model's own distribution, seed 0. */
export interface Sampling {
  /** Divides the logits; 0 takes the likeliest token. Default 1. */
  temperature?: number;
  /** Only the likeliest `topK` tokens; 0 (default): all. */
  topK?: number;
  /** Only the likeliest tokens that reach this probability together. Default 1: all. */
  topP?: number;
  /** Only tokens at least this many times as probable as the likeliest. Default 0: all. */
  minP?: number;
  /** Weakens the latest 64 tokens. Default 1: off. */
  repetitionPenalty?: number;
  /** The same seed gives the same choices. Default 0. */
  seed?: number | bigint;
}

/** A trained model. Everything made of it stays usable until `free`. */
export interface Model {
  readonly kind: "text" | "classify" | "forecast" | "policy" | "tokens" | "values" | "regress";
  readonly reads: Reads;
  /** Numbers after a step: logits of tokens or classes, or values. */
  readonly outputs: number;
  readonly parameters: number;
  /** Bytes of a session that has read nothing. */
  readonly sessionBytes: number;
  /** Whether the file has a vocabulary, so that `encode`, `decode` and `generate` work. */
  readonly hasText: boolean;
  readonly table: Table | null;
  /** Begins `rows` sequences (default 1), of which nothing has been read. */
  session(rows?: number): Session;
  /** Goes on from what `Session.save`, `minrnn_session_save` of C or `minrnn stream --save-state` gave for this model. */
  restore(bytes: BufferSource): Session;
  encode(text: string): Uint32Array;
  decode(tokens: Iterable<number>): string;
  sampler(settings?: Sampling): Sampler;
  decoder(): Decoder;
  /** Lets go of the model, its sessions and their memory. */
  free(): void;
}

/** What a model remembers of one or several sequences, each a row. */
export interface Session {
  readonly model: Model;
  readonly rows: number;
  /** Memory that it takes. */
  readonly bytes: number;
  /**
   * Reads one step of every row, or of the `rows` that are named (ascending), and gives the outputs after it, `[rows, outputs]`.
   * A step is a token, or `reads.width` numbers as the model sees them.
   */
  step(given: number | ArrayLike<number>, rows?: ArrayLike<number>): Float32Array;
  /** Reads many steps into one row at once and gives the outputs after the last, `[outputs]`. */
  prefill(given: ArrayLike<number>, row?: number): Float32Array;
  /** Reads many steps into the only row and gives the outputs after each, `[steps, outputs]`. */
  forward(given: ArrayLike<number>): Float32Array;
  /**
   * Reads the next row of a table, in the table's units (NaN, null or undefined where a number is missing), for every row or those named, and gives the
   * probability of each class, the number of the sequence, or the values of the next steps `[horizon, targets, quantiles]`.
   */
  row(values: ArrayLike<number | null | undefined>, rows?: ArrayLike<number>): Float64Array;
  /** Reads the prompt, then writes token after token, each already read when it is given. */
  generate(prompt?: string, options?: Sampling & { limit?: number }): Generator<{ token: number; text: string }, void, void>;
  /** A copy that goes its own way. */
  fork(): Session;
  save(): Uint8Array;
  /** Begins one row anew, or all. */
  reset(row?: number): void;
  free(): void;
}

/** Chooses tokens from logits. */
export interface Sampler {
  /** `recent`: what the penalty of repetition acts on. */
  sample(logits: ArrayLike<number>, recent?: ArrayLike<number>): number;
  free(): void;
}

/** Turns tokens into text as they come. */
export interface Decoder {
  /** The whole characters that the token completes. */
  push(token: number): string;
  free(): void;
}
