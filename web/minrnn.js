// minrnn's inference runtime as an ES module: packed models in a browser, a worker or node. Types and documentation: minrnn.d.ts.

const KINDS = ["", "text", "classifier", "forecaster", "policy", "tokens", "values", "regressor"];
/** The task of a model of a table, as its file has it, by the kind of the model. */
const TASKS = { classifier: "classify", forecaster: "forecast", regressor: "regress" };
const SIZES = ["vocab", "width", "outputs", "parameters", "columns", "classes", "targets", "horizon", "quantiles", "predictions", "mayMiss", "stepsSeen", "groups"];
const SETTINGS = ["temperature", "topK", "topP", "minP", "repetitionPenalty"];
/** The number of latest tokens that the repetition penalty applies to, as in `minrnn generate`. */
const RECENT = 64;
/** All rows of a session. */
const ALL = 0xffffffff;

/** The error of a failed call; its message says why and what to do. */
export class MinrnnError extends Error {
  constructor(message, status) {
    super(message);
    this.name = "MinrnnError";
    this.status = status;
  }
}

let ours;
/** What relative URLs are relative to: this file, or where a bundler has put it; in a script that is not a module, the page. */
const HERE = import.meta.url ?? globalThis.document?.baseURI ?? globalThis.location?.href;
/** Put together here, as bundlers for browsers would try to resolve a literal name. */
const FILES = ["node:fs", "promises"].join("/");

async function compile(source) {
  if (source instanceof WebAssembly.Module) return source;
  if (source === undefined) return (ours ??= compile(import.meta.url ? new URL("./minrnn.wasm", import.meta.url) : "minrnn.wasm").catch((error) => ((ours = undefined), Promise.reject(error))));
  let bytes = source;
  if (typeof source === "string" || source instanceof URL) {
    const url = new URL(source, HERE);
    if (url.protocol === "file:") {
      const files = await import(/* webpackIgnore: true */ /* @vite-ignore */ FILES);
      bytes = await files.readFile(url);
    } else bytes = await fetch(url);
  }
  if (typeof Response === "function" && bytes instanceof Response) {
    if (!bytes.ok) throw new MinrnnError(`the WebAssembly module at ${bytes.url} could not be fetched (${bytes.status}); it lies beside minrnn.js in the package`);
    bytes = await bytes.arrayBuffer();
  }
  try {
    return await WebAssembly.compile(bytes);
  } catch (error) {
    throw new MinrnnError(`the WebAssembly module could not be compiled (${error.message}); it needs a host with vectors (SIMD), such as a browser of 2023 or node 18`);
  }
}

/** Loads a packed model. Each model has its own instance of the module, with its own memory. */
export async function load(bytes, { wasm } = {}) {
  const instance = await WebAssembly.instantiate(await compile(wasm), {});
  return new Model(new Runtime(instance.exports), bytes);
}

/** The instance's functions, and the transfer of numbers and texts through its memory. */
class Runtime {
  constructor(exports) {
    this.c = exports;
    this.registry = new FinalizationRegistry(([free, handle]) => this.c && free(handle));
  }

  /** Calls a function; throws its error. */
  call(name, ...given) {
    if (!this.c) throw new MinrnnError("the model was freed, or failed inside; load it again");
    let answer;
    try {
      answer = this.c[name](...given);
    } catch (error) {
      // The memory of an instance that stopped half-way cannot be trusted.
      this.c = null;
      throw new MinrnnError(`the module stopped inside of ${name} (${error.message}), perhaps for lack of memory; load the model again`, 11);
    }
    return answer;
  }

  check(name, ...given) {
    const status = this.call(name, ...given);
    if (status !== 0) throw this.refusal(status);
  }

  refusal(status) {
    return new MinrnnError(this.text(this.call("minrnn_last_error")), status);
  }

  /** Runs `work` with memory for each of `arrays`, typed arrays that are copied there, or numbers of bytes. */
  lend(arrays, work) {
    const lent = [];
    try {
      for (const array of arrays) {
        const len = typeof array === "number" ? array : array.byteLength;
        const at = this.call("minrnn_alloc", len) >>> 0;
        if (at === 0) throw new MinrnnError(`memory cannot hold ${len} bytes more; free sessions or models`, 10);
        lent.push([at, len]);
        if (typeof array !== "number") new Uint8Array(this.c.memory.buffer, at, len).set(new Uint8Array(array.buffer, array.byteOffset, len));
      }
      return work(...lent.map(([at]) => at));
    } finally {
      if (this.c) for (const [at, len] of lent) this.c.minrnn_dealloc(at, len);
    }
  }

  /** A copy of `len` numbers. */
  numbers(Kind, at, len) {
    return new Kind(this.c.memory.buffer, at, len).slice();
  }

  word(at) {
    return new Uint32Array(this.c.memory.buffer, at, 1)[0];
  }

  text(at) {
    const memory = new Uint8Array(this.c.memory.buffer);
    return new TextDecoder().decode(memory.subarray(at, memory.indexOf(0, at >>> 0)));
  }

  /** The handle that the function of this name creates. */
  make(name, ...given) {
    return this.lend([4], (out) => {
      this.check(name, ...given, out);
      return this.word(out);
    });
  }

  /** The output of a function that alone knows its length: called once for the length, once for the content. */
  written(Kind, name, ...given) {
    const len = this.lend([4], (out) => (this.check(name, ...given, 0, 0, out), this.word(out)));
    return this.lend([Kind.BYTES_PER_ELEMENT * len, 4], (buffer, out) => (this.check(name, ...given, buffer, len, out), this.numbers(Kind, buffer, len)));
  }
}

/** An object in the instance, freed together with its JavaScript object, or earlier. */
class Handle {
  constructor(runtime, handle, free) {
    this.runtime = runtime;
    this.handle = handle;
    this.freed = free;
    runtime.registry.register(this, [runtime.c[free], handle], this);
  }

  free() {
    if (this.handle === 0) return;
    this.runtime.registry.unregister(this);
    if (this.runtime.c) this.runtime.call(this.freed, this.handle);
    this.handle = 0;
  }
}

class Model {
  constructor(runtime, bytes) {
    const view = octets(bytes);
    this.runtime = runtime;
    this.handle = runtime.lend([view], (at) => runtime.make("minrnn_model_from_memory", at, view.length));
    const sizes = Object.fromEntries(SIZES.map((name, what) => [name, runtime.call("minrnn_model_size", this.handle, what) >>> 0]));
    const names = (name) => Array.from({ length: sizes[name] }, (_, i) => runtime.text(runtime.call("minrnn_model_name", this.handle, SIZES.indexOf(name), i)));
    this.kind = KINDS[runtime.call("minrnn_model_kind", this.handle)];
    this.reads = sizes.vocab > 0 ? { kind: "tokens", vocab: sizes.vocab } : { kind: "values", width: sizes.width };
    this.outputs = sizes.outputs;
    this.parameters = sizes.parameters;
    this.sessionBytes = runtime.call("minrnn_model_session_bytes", this.handle, 0) >>> 0;
    this.hasText = this.kind === "text";
    this.table = null;
    const task = TASKS[this.kind];
    if (task !== undefined) {
      const [group = null] = names("groups");
      this.table = { task, columns: names("columns"), target: names("targets"), group, mayMiss: sizes.mayMiss === 1 };
    }
    if (task === "classify") this.table.classes = names("classes");
    if (task === "forecast") {
      const quantiles = Array.from({ length: sizes.quantiles }, (_, i) => runtime.call("minrnn_model_quantile", this.handle, i));
      Object.assign(this.table, { horizon: sizes.horizon, quantiles });
    }
  }

  threshold(share = 0.999) {
    if (!(number(share) > 0 && share < 1)) throw new MinrnnError(`expected a share of rows above 0 and below 1, found ${shown(share)}`, 5);
    const threshold = this.runtime.call("minrnn_model_threshold", this.handle, share);
    if (Number.isNaN(threshold)) throw this.runtime.refusal(6);
    return threshold;
  }

  session(rows = 1) {
    return new Session(this, this.runtime.make("minrnn_session_new", this.handle, whole(rows, "a number of rows")));
  }

  restore(bytes) {
    const saved = octets(bytes);
    return this.runtime.lend([saved], (at) => new Session(this, this.runtime.make("minrnn_session_restore", this.handle, at, saved.length)));
  }

  sampler(settings = {}) {
    return new Sampler(this.runtime, settings);
  }

  decoder() {
    return new Decoder(this.runtime, this.runtime.make("minrnn_text_new", this.handle), "minrnn_text_free");
  }

  encode(text) {
    if (typeof text !== "string") throw new MinrnnError(`expected a text, found ${shown(text)}`, 5);
    const utf8 = new TextEncoder().encode(text);
    return this.runtime.lend([utf8], (at) => this.runtime.written(Uint32Array, "minrnn_encode", this.handle, at, utf8.length));
  }

  decode(tokens) {
    const ids = wholes(tokens, "a token");
    const utf8 = this.runtime.lend([ids], (at) => this.runtime.written(Uint8Array, "minrnn_decode", this.handle, at, ids.length));
    return new TextDecoder().decode(utf8);
  }

  /** Frees everything: the instance and its memory, with all sessions. */
  free() {
    this.runtime.c = null;
  }
}

class Session extends Handle {
  constructor(model, handle) {
    super(model.runtime, handle, "minrnn_session_free");
    this.model = model;
    this.rows = this.runtime.call("minrnn_session_size", handle, 0) >>> 0;
  }

  get bytes() {
    return this.runtime.call("minrnn_session_size", this.handle, 1) >>> 0;
  }

  /** The inputs as a typed array, and the kind in the names of the functions that read them. */
  steps(given) {
    const list = typeof given === "number" ? [given] : given;
    const isTokens = this.model.reads.kind === "tokens";
    return [isTokens ? wholes(list, "a token") : numbers(Float32Array, list, number), isTokens ? "tokens" : "values"];
  }

  step(given, rows) {
    const [steps, kind] = this.steps(given);
    const chosen = wholes(rows ?? [], "a row");
    const outputs = (rows ? chosen.length : this.rows) * this.model.outputs;
    return this.runtime.lend([steps, chosen, 4 * outputs], (at, rowsAt, out) => {
      this.runtime.check(`minrnn_step_${kind}`, this.handle, rows ? rowsAt : 0, chosen.length, at, steps.length, out, outputs);
      return this.runtime.numbers(Float32Array, out, outputs);
    });
  }

  prefill(given, row = 0) {
    const [steps, kind] = this.steps(given);
    const { outputs } = this.model;
    return this.runtime.lend([steps, 4 * outputs], (at, out) => {
      this.runtime.check(`minrnn_prefill_${kind}`, this.handle, whole(row, "a row"), at, steps.length, out, outputs);
      return this.runtime.numbers(Float32Array, out, outputs);
    });
  }

  forward(given) {
    const [steps, kind] = this.steps(given);
    const outputs = (steps.length / (kind === "tokens" ? 1 : this.model.reads.width)) * this.model.outputs;
    return this.runtime.lend([steps, 4 * outputs], (at, out) => {
      this.runtime.check(`minrnn_forward_${kind}`, this.handle, at, steps.length, out, outputs);
      return this.runtime.numbers(Float32Array, out, outputs);
    });
  }

  row(values, rows) {
    return this.table("minrnn_table_step", values, rows, this.model.outputs);
  }

  surprise(values, rows) {
    return this.table("minrnn_table_surprise", values, rows, 1);
  }

  /** What `name` says of the next row of a table, `each` numbers for every row or the given ones. */
  table(name, values, rows, each) {
    const cells = numbers(Float64Array, values, (cell) => (cell == null ? NaN : number(cell)));
    const chosen = wholes(rows ?? [], "a row");
    const n = (rows ? chosen.length : this.rows) * each;
    return this.runtime.lend([cells, chosen, 8 * n], (at, rowsAt, out) => {
      this.runtime.check(name, this.handle, rows ? rowsAt : 0, chosen.length, at, cells.length, out, n);
      return this.runtime.numbers(Float64Array, out, n);
    });
  }

  *generate(prompt = "", { limit = Infinity, ...settings } = {}) {
    const [sampler, decoder] = [this.model.sampler(settings), this.model.decoder()];
    try {
      const start = () => [this.runtime.make("minrnn_start_token", this.model.handle)];
      const tokens = prompt === "" ? start() : this.model.encode(prompt);
      const recent = Array.from(tokens.slice(-RECENT));
      let logits = this.prefill(tokens);
      for (let written = 0; written < limit; written++) {
        const token = sampler.sample(logits, recent);
        // Read before it is yielded, so that a caller that stops here has a session that has read the token.
        logits = this.step(token);
        yield { token, text: decoder.push(token) };
        recent.push(token);
        if (recent.length > RECENT) recent.shift();
      }
    } finally {
      sampler.free();
      decoder.free();
    }
  }

  fork() {
    return new Session(this.model, this.runtime.make("minrnn_session_fork", this.handle));
  }

  save() {
    return this.runtime.written(Uint8Array, "minrnn_session_save", this.handle);
  }

  reset(row) {
    this.runtime.check("minrnn_session_reset", this.handle, row === undefined ? ALL : whole(row, "a row"));
  }
}

class Sampler extends Handle {
  constructor(runtime, { seed = 0, ...settings }) {
    if (typeof seed !== "bigint" && !Number.isSafeInteger(seed)) throw new MinrnnError(`a seed is a whole number, found ${shown(seed)}`, 5);
    super(runtime, runtime.make("minrnn_sampler_new", BigInt(seed)), "minrnn_sampler_free");
    for (const [name, value] of Object.entries(settings)) {
      const setting = SETTINGS.indexOf(name);
      if (setting < 0) throw new MinrnnError(`there is no setting '${name}' of a sampler; expected seed, ${SETTINGS.join(", ")}`, 5);
      if (value !== undefined) runtime.check("minrnn_sampler_set", this.handle, setting, number(value));
    }
  }

  sample(logits, recent = []) {
    const [shares, latest] = [numbers(Float32Array, logits, number), wholes(recent, "a token")];
    return this.runtime.lend([shares, latest, 4], (at, recentAt, out) => {
      this.runtime.check("minrnn_sampler_sample", this.handle, at, shares.length, recentAt, latest.length, out);
      return this.runtime.word(out);
    });
  }
}

class Decoder extends Handle {
  push(token) {
    // A token's text is short; the function fails if it is not.
    const room = 256;
    return this.runtime.lend([room, 4], (at, out) => {
      this.runtime.check("minrnn_text_decode", this.handle, whole(token, "a token"), at, room, out);
      return new TextDecoder().decode(this.runtime.numbers(Uint8Array, at, this.runtime.word(out)));
    });
  }
}

/** JavaScript would silently convert or drop wrong arguments, so all that come from outside pass one of these functions. */

const shown = (given) => (typeof given === "string" ? `'${given}'` : String(given));

/** `given` as a whole number; `what` names it in errors. */
function whole(given, what) {
  if (!Number.isInteger(given) || given < 0 || given >= ALL) throw new MinrnnError(`${what} is a whole number from 0, found ${shown(given)}`, 5);
  return given;
}

function number(given) {
  if (typeof given !== "number") throw new MinrnnError(`expected a number, found ${shown(given)}`, 5);
  return given;
}

/** The numbers of `list` as an array of this kind, each as `read` takes it. */
function numbers(Kind, list, read) {
  if (list instanceof Kind) return list;
  if (list == null) throw new MinrnnError(`expected a list, found ${shown(list)}`, 5);
  return Kind.from(list, (given) => read(given));
}

const wholes = (list, what) => numbers(Uint32Array, list, (given) => whole(given, what));

/** The bytes of a buffer, or of a view of one. */
function octets(bytes) {
  if (ArrayBuffer.isView(bytes)) return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes instanceof ArrayBuffer || (typeof SharedArrayBuffer !== "undefined" && bytes instanceof SharedArrayBuffer)) return new Uint8Array(bytes);
  throw new MinrnnError(`expected an ArrayBuffer or a typed array, found ${shown(bytes)}`, 5);
}
