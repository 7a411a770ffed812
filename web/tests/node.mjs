// The module and its JavaScript in node, compared with the results of the C library (native.py):
//   node node.mjs DIST MODELS REFERENCE HANDED     writes states for `native.py check` to HANDED
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { after, test } from "node:test";
import { pathToFileURL } from "node:url";
import { resolve } from "node:path";
import "./axis.mjs";
import "./tables.mjs";

const [dist, models, referencePath, handedPath] = process.argv.slice(2).map((path) => resolve(path));
const { load, MinrnnError } = await import(pathToFileURL(`${dist}/minrnn.js`));
const file = (name) => readFile(`${models}/${name}`);
const reference = JSON.parse(await readFile(referencePath, "utf8"));
const fromBase64 = (text) => new Uint8Array(Buffer.from(text, "base64"));
const handed = {};

/** Compares numbers as native.py does: by their difference, relative for numbers above 1. */
function near(found, expected, what) {
  assert.equal(found.length, expected.length, what);
  expected.forEach((number, i) => {
    const apart = Math.abs(found[i] - number) / Math.max(1, Math.abs(number));
    assert.ok(apart <= 1e-5, `${what}[${i}]: ${found[i]}, expected ${number}`);
  });
}

test("the same seed gives the tokens of the C library on the plain level", async () => {
  const model = await load(await file("shakespeare.minrnn"));
  assert.equal(model.kind, "text");
  assert.deepEqual(Array.from(model.encode(reference.prompt)), reference.promptTokens);
  const session = model.session();
  assert.deepEqual(Array.from(session.prefill(reference.promptTokens)), reference.logits, "the bits of the C library");
  const sampled = { ...reference.sampling, limit: reference.tokens.length };
  const written = Array.from(model.session().generate(reference.prompt, sampled));
  assert.deepEqual(written.map(({ token }) => token), reference.tokens);
  assert.equal(written.map(({ text }) => text).join(""), model.decode(reference.tokens));
});

test("a session of the C library goes on here, and one of ours is handed back", async () => {
  const model = await load(await file("shakespeare.minrnn"));
  const session = model.restore(fromBase64(reference.textState));
  const own = model.session();
  own.prefill(reference.promptTokens);
  for (const token of reference.tokens) near(session.step(token), Array.from(own.step(token)), "logits after a restored state");
  handed.textState = Buffer.from(session.save()).toString("base64");
  handed.tokens = reference.tokens.slice(0, 40);
  handed.logits = handed.tokens.map((token) => Array.from(session.step(token)));
});

test("a forecaster reads a table as the C library does, and goes on from its session", async () => {
  const model = await load(await file("temperature.minrnn"));
  assert.deepEqual([model.kind, model.table.task], ["forecaster", "forecast"]);
  assert.deepEqual(model.table.columns, ["temperature"]);
  const rows = (await readFile(`${models}/temperature.csv`, "utf8")).trim().split("\n").slice(1).map((line) => [Number(line.split(",")[1])]);
  const session = model.session();
  const handedOver = model.restore(fromBase64(reference.forecastState));
  assert.equal(model.threshold(0.9), reference.threshold);
  assert.ok(model.threshold() >= reference.threshold);
  assert.throws(() => model.threshold(0), /expected a share of rows above 0/);
  reference.forecasts.forEach((expected, at) => {
    const [surprise] = session.surprise(rows[at]);
    if (reference.surprises[at] === null) assert.ok(Number.isNaN(surprise), `surprise ${at} is not known`);
    else near([surprise], [reference.surprises[at]], `surprise ${at}`);
    if (at >= reference.half) near(handedOver.surprise(rows[at]), [surprise], `surprise ${at} from a restored state`);
    near(session.row(rows[at]), expected, `forecast ${at}`);
    if (at >= reference.half) near(handedOver.row(rows[at]), expected, `forecast ${at} from a restored state`);
  });
  handed.forecastState = Buffer.from(session.save()).toString("base64");
  handed.rows = rows.slice(-40);
  handed.forecasts = handed.rows.map((row) => Array.from(session.row(row)));
});

test("forks go their own way, resets begin anew, rows are independent", async () => {
  const model = await load(await file("sensors.minrnn"));
  assert.deepEqual([model.kind, model.table.task], ["classifier", "classify"]);
  assert.deepEqual(model.table.classes.length, model.outputs);
  assert.throws(() => model.session().surprise([0.3]), /labels whole sequences/);
  assert.throws(() => model.threshold(), /does not say how surprising/);
  const session = model.session();
  const first = session.row([0.3]);
  const fork = session.fork();
  session.row([-0.9]);
  assert.notDeepEqual(fork.row([0.2]), session.row([0.2]));
  session.reset();
  assert.deepEqual(session.row([0.3]), first);
  const both = model.session(2);
  const shares = both.row([0.3, -0.7]);
  assert.deepEqual(shares.slice(0, model.outputs), first);
  assert.equal(both.row([0.1], [1]).length, model.outputs);
  assert.ok(Math.abs(first.reduce((a, b) => a + b) - 1) < 1e-6, "probabilities sum to 1");
});

test("steps, a prompt at once, and outputs after every step agree", async () => {
  const model = await load(await file("shakespeare.minrnn"));
  const tokens = model.encode("To be, or not to be");
  const [stepped, all] = [model.session(), model.session()];
  let last;
  for (const token of tokens) last = stepped.step(token);
  const every = all.forward(tokens);
  assert.deepEqual(every.slice(-model.outputs), last);
  assert.deepEqual(model.session().prefill(tokens), last);
  assert.ok(all.bytes >= model.sessionBytes);
});

test("a regressor answers in the units of its table, as the C library does", async () => {
  const model = await load(await file("life.minrnn"));
  assert.equal(model.kind, "regressor");
  assert.deepEqual(model.table, { task: "regress", columns: ["heat", "noise"], target: ["life"], group: "machine", mayMiss: false });
  reference.machines.forEach((rows, machine) => {
    const session = model.session();
    const lives = rows.map((row) => session.row(row)[0]);
    near([lives.at(-1)], [reference.lives[machine]], `life of machine ${machine}`);
  });
});

test("rows of a table come sequence by sequence, as the model's group says", async () => {
  const { readTable } = await import(pathToFileURL(`${dist}/table.js`));
  const machines = await readFile(`${models}/machines.csv`, "utf8");
  const { rows, starts } = readTable(machines, ["heat", "noise"], "machine");
  assert.deepEqual(rows, reference.machines.flat());
  assert.deepEqual([...starts], [0, 2]);
  assert.deepEqual([...readTable(machines, ["noise"], null).starts], [0]);
  assert.throws(() => readTable("heat\n1\nwarm\n", ["heat"], null), /Line 3 .*'warm'.*expected a number/);
  assert.throws(() => readTable("heat\n", ["heat"], null), /no rows/);
});

test("a model of pieces is opened, and its text refused with a sentence", async () => {
  const model = await load(await file("pieces.minrnn"));
  assert.deepEqual([model.kind, model.hasText, model.reads], ["tokens", false, { kind: "tokens", vocab: 257 }]);
  for (const refused of [() => model.encode("ab"), () => Array.from(model.session().generate("ab", { limit: 1 })), () => model.decoder()]) {
    assert.throws(refused, (error) => error instanceof MinrnnError && /pieces \(BPE\)/.test(error.message));
  }
  assert.equal(model.session().step(256).length, 257);
});

/** The checksum at the end of a packed file. */
function crc32c(bytes) {
  let crc = ~0;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0x82f63b78 : 0);
  }
  return ~crc >>> 0;
}

test("a file that lies under a checksum that fits is a sentence or a model, and stops nothing", async () => {
  const good = await file("sensors.minrnn");
  const header = new DataView(good.buffer, good.byteOffset).getUint32(12, true);
  let [seed, opened] = [1, 0];
  const random = (below) => (seed = (Math.imul(seed, 1103515245) + 12345) >>> 0) % below;
  for (let i = 0; i < 400; i++) {
    const bytes = Uint8Array.from(good);
    // Mostly in the header, where the sizes are.
    const at = i % 4 ? 24 + random(header) : random(bytes.length - 4);
    bytes[at] = i % 2 ? 48 + random(10) : random(256);
    new DataView(bytes.buffer).setUint32(bytes.length - 4, crc32c(bytes.subarray(0, -4)), true);
    try {
      const model = await load(bytes);
      model.table ? model.session().row(model.table.columns.map(() => 0.5)) : model.session();
      model.free();
      opened += 1;
    } catch (error) {
      assert.ok(error instanceof MinrnnError && error.status !== 11, `byte ${at}: ${error.stack}`);
    }
  }
  assert.ok(opened > 20 && opened < 380, `${opened} of 400 were opened`);
});

test("what is no number, no row and no token is not taken for one", async () => {
  const [sensors, text, forecaster] = await Promise.all(["sensors", "shakespeare", "temperature"].map(async (name) => load(await file(`${name}.minrnn`))));
  const [session, letters, three] = [sensors.session(), text.session(), forecaster.session(3)];
  const refusals = [
    () => session.row([null]), () => session.row([undefined]), () => session.row(["0.3"]), () => session.row(["warm"]), () => session.row([[]]),
    () => session.row(null), () => session.step([null]), () => session.step(["0.3"]), () => session.step([true]), () => session.row([0.3], [0.5]),
    () => session.row([0.3], [-1]), () => session.row([0.3], ["0"]), () => session.reset(-1), () => session.reset(0xffffffff), () => session.reset(null),
    () => letters.prefill([1], 2 ** 32), () => letters.prefill([1], 0.5), () => letters.prefill([1], -1), () => letters.step(1.5), () => letters.step("1"),
    () => letters.step(null), () => letters.forward([1, -1]), () => text.decode([1.5]), () => text.decode([-1]), () => text.decoder().push(1.5),
    () => text.encode(7), () => text.encode(undefined), () => text.session(1.5), () => text.session(-1), () => text.restore("bytes"), () => text.restore(7),
    () => text.sampler({ seed: 0.5 }), () => text.sampler({ seed: "x" }), () => text.sampler({ topP: null }), () => text.sampler({ temperature: "0.5" }),
    () => text.sampler().sample([null, 1]), () => text.sampler().sample([0, 1], [0.5]), () => three.step([1, 2, 3], [0, 2 ** 32 + 1, 2]),
  ];
  const before = [session, letters, three].map((one) => one.save());
  for (const refusal of refusals) assert.throws(refusal, (error) => error instanceof MinrnnError && error.message.length > 15, String(refusal));
  [session, letters, three].forEach((one, at) => assert.deepEqual(one.save(), before[at], "a refusal changes nothing"));
  // A buffer works as well as a view of it.
  const saved = session.save();
  assert.deepEqual(sensors.restore(saved.buffer.slice(saved.byteOffset, saved.byteOffset + saved.byteLength)).row([0.3]), session.row([0.3]));
});

test("what cannot be done is a sentence", async () => {
  const good = await file("sensors.minrnn");
  const damaged = Uint8Array.from(good);
  damaged[damaged.length >> 1] ^= 1;
  for (const bytes of [damaged, good.subarray(0, 100), new Uint8Array(0), new TextEncoder().encode("not a model")]) {
    await assert.rejects(load(bytes), (error) => error instanceof MinrnnError && error.status > 0 && error.message.length > 20);
  }
  const model = await load(good);
  const session = model.session();
  const refusals = [
    () => model.encode("text"), () => session.row([1, 2]), () => session.step([NaN]), () => session.prefill([]),
    () => model.restore(new Uint8Array(10)), () => model.sampler({ topP: 2 }), () => model.sampler({ typo: 1 }), () => session.row([0], [7]),
  ];
  for (const refusal of refusals) assert.throws(refusal, (error) => error instanceof MinrnnError && error.message.length > 15, String(refusal));
  // A refusal changes nothing.
  assert.deepEqual(session.row([0.3]), model.session().row([0.3]));
  session.free();
  assert.throws(() => session.row([0.3]), MinrnnError);
  model.free();
  assert.throws(() => model.session(), /load it again/);
});

test("sessions that are dropped leave no memory behind", async () => {
  const model = await load(await file("shakespeare.minrnn"));
  const grown = () => model.runtime.c.memory.buffer.byteLength;
  model.session().free();
  const before = grown();
  for (let i = 0; i < 2000; i++) {
    const session = model.session();
    session.step(1);
    session.free();
  }
  assert.ok(grown() - before <= 1 << 20, `${grown() - before} bytes more`);
});

after(() => writeFile(handedPath, JSON.stringify(handed)));
