// Holds the models, away from the page's thread: one that writes text, one that reads a stream.
import { load } from "./minrnn.js";

/** Milliseconds of work before the worker handles messages again. */
const TURN = 14;
/** Milliseconds a token takes at reading pace. */
const PACE = 28;
/** Tokens of a prompt that are read in one piece. */
const PIECE = 128;

let text = null;
let stream = null;
/** Number of models opened so far: rows name the one they are for. */
let opened = 0;
/** The text being written: its prompt is read, and its tokens are drawn, only while it is the current one. */
let writing = null;

function describe(model, name, size) {
  const { kind, reads, outputs, parameters, sessionBytes, table } = model;
  return { name, size, kind, reads, outputs, parameters, sessionBytes, table };
}

const calls = {
  /** Opens a model in place of the one of its kind. A refused file changes nothing. */
  async open({ bytes, name }) {
    const model = await load(bytes);
    const place = model.reads.kind === "tokens" ? "text" : "stream";
    if (place === "text") {
      if (!model.hasText) {
        model.free();
        throw new Error("the model reads tokens, but has no vocabulary of characters or bytes, and this page has none of pieces (BPE); train one with `--set tokenizer=char` or `byte`, or run this one with the command");
      }
      calls.stop();
      text?.model.free();
      text = { model, session: null };
    } else {
      stream?.model.free();
      stream = { model, session: model.session(), of: ++opened };
    }
    return { place, of: opened, ...describe(model, name, bytes.byteLength) };
  },

  /**
   * Writes on, from a prompt or from where it stopped, until it is told to stop or `limit` tokens are written. Answers once the prompt has been read, with
   * false if it was stopped before.
   */
  async write({ prompt, sampling, slowly, limit }) {
    calls.stop();
    const own = { left: limit, slowly, sampling };
    writing = own;
    try {
      if (prompt !== null && !(await read(prompt, own))) return false;
      calls.dial(own.sampling);
    } catch (error) {
      if (own === writing) writing = null;
      throw error;
    }
    setTimeout(turn, 0, own);
    return true;
  },

  dial(sampling) {
    if (writing) writing.sampling = sampling;
    const draws = JSON.stringify(sampling);
    if (!text || (text.sampler && text.draws === draws)) return;
    const sampler = text.model.sampler(sampling);
    text.sampler?.free();
    Object.assign(text, { sampler, draws });
  },

  pace({ slowly }) {
    if (writing) writing.slowly = slowly;
  },

  stop() {
    if (writing) postMessage({ event: "stopped", done: false });
    writing = null;
  },

  /**
   * Reads rows of numbers, of a new sequence if it `begins`; answers with the prediction after each, the time per row and the size of the session.
   * Rows for an earlier model are dropped.
   */
  rows({ rows, begins, of }) {
    if (of !== stream.of) return null;
    const { session, model } = stream;
    // The session still holds the previous sequence.
    if (begins) session.reset();
    const begun = performance.now();
    const predictions = rows.map((row) => (model.table ? session.row(row) : session.step(row)));
    return { predictions, cost: (performance.now() - begun) / Math.max(1, rows.length), bytes: session.bytes };
  },

  /** Forgets the stream so far. */
  forget() {
    stream?.session.reset();
  },
};

/** Reads a prompt for `own`, in turns, replacing what was read before; false if it was stopped, in which case nothing is read. */
async function read(prompt, own) {
  const { model } = text;
  const tokens = model.encode(prompt);
  // Freed before another is made: what attention keeps may take half of the memory.
  text.session?.free();
  text.session = null;
  const session = model.session();
  let logits = null;
  try {
    let begun = performance.now();
    for (let at = 0; at < tokens.length; at += PIECE) {
      logits = session.prefill(tokens.slice(at, at + PIECE));
      if (performance.now() - begun < TURN || at + PIECE >= tokens.length) continue;
      postMessage({ event: "reading", share: (at + PIECE) / tokens.length });
      await new Promise((resolve) => setTimeout(resolve));
      if (own !== writing) {
        session.free();
        return false;
      }
      begun = performance.now();
    }
  } catch (error) {
    session.free();
    throw error;
  }
  text.sampler?.free();
  text.decoder?.free();
  Object.assign(text, { session, logits, sampler: null, decoder: model.decoder() });
  return true;
}

function turn(own) {
  if (own !== writing) return;
  const { session, sampler, decoder } = text;
  const begun = performance.now();
  let [written, tokens, now] = ["", 0, begun];
  try {
    do {
      const token = sampler.sample(text.logits);
      text.logits = session.step(token);
      written += decoder.push(token);
      tokens += 1;
      now = performance.now();
    } while (tokens < own.left && !own.slowly && now - begun < TURN);
  } catch (error) {
    writing = null;
    return postMessage({ event: "stopped", error: error.message });
  }
  own.left -= tokens;
  postMessage({ event: "written", written, tokens, spent: now - begun, bytes: session.bytes });
  if (own.left > 0) return setTimeout(turn, own.slowly ? PACE : 0, own);
  writing = null;
  postMessage({ event: "stopped", done: true });
}

onmessage = async ({ data: { id, name, argument } }) => {
  try {
    postMessage({ id, value: await calls[name](argument ?? {}) });
  } catch (error) {
    postMessage({ id, error: error.message });
  }
};
