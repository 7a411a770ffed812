// The page in a headless Chromium: what a person does with it, at the width of a desktop and of a phone, in light and dark.
//   node browser.mjs TOOLS DIST MODELS REFERENCE PICTURES ROUND     ROUND: states that C has saved, to continue from (handed.py)
import assert from "node:assert/strict";
import { readFile, mkdir, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { browse, serve } from "./browser-host.mjs";

const [tools, dist, models, referencePath, pictures, round] = process.argv.slice(2).map((path) => resolve(path));
const reference = JSON.parse(await readFile(referencePath, "utf8"));
await mkdir(pictures, { recursive: true });
const [{ server, home }, browser] = await Promise.all([serve(dist), browse(tools)]);

/** Opens the page; any complaint of the page, or request to another host, fails the test. */
async function opened(options) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const wrong = [];
  page.on("pageerror", (error) => wrong.push(String(error)));
  page.on("console", (message) => message.type() === "error" && wrong.push(message.text()));
  page.on("request", (request) => request.url().startsWith(home) || /^(data|blob):/.test(request.url()) || wrong.push(`asked for ${request.url()}`));
  await page.goto(home);
  await page.waitForSelector("#go:enabled");
  await page.waitForSelector("#play:enabled");
  return { page, wrong, context };
}

const DESK = { viewport: { width: 1280, height: 900 } };
const PHONE = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, hasTouch: true, isMobile: true };
const number = async (page, selector) => Number((await page.textContent(selector)).replace(/[^\d.]/g, ""));
const until = (page, check, argument) => page.waitForFunction(check, argument, { timeout: 60_000 });

/** Moves a slider with the keyboard, as `fill` cannot. */
async function dial(page, name, value) {
  await page.getByRole("slider", { name }).evaluate((slider, value) => {
    slider.value = value;
    slider.dispatchEvent(new Event("input", { bubbles: true }));
  }, String(value));
}

async function dropped(page, files) {
  const contents = await Promise.all(files.map(async ([name, bytes]) => [name, (bytes ?? (await readFile(join(models, name)))).toString("base64")]));
  const transfer = await page.evaluateHandle((contents) => {
    const transfer = new DataTransfer();
    for (const [name, base64] of contents) transfer.items.add(new File([Uint8Array.from(atob(base64), (sign) => sign.charCodeAt(0))], name));
    return transfer;
  }, contents);
  await page.dispatchEvent("body", "dragover", { dataTransfer: transfer });
  assert.ok(await page.isVisible("#drop"), "the page shows that it takes what is dragged");
  await page.dispatchEvent("body", "drop", { dataTransfer: transfer });
  assert.ok(!(await page.isVisible("#drop")));
}

const tests = {
  async "the text is that of the C library on the plain level"() {
    const { load } = await import(pathToFileURL(join(dist, "minrnn.js")));
    const expected = (await load(await readFile(join(models, "shakespeare.minrnn")))).decode(reference.tokens);
    const { page, wrong, context } = await opened(DESK);
    await dial(page, "Temperature", reference.sampling.temperature);
    await dial(page, "Top-k", reference.sampling.topK);
    await dial(page, "Top-p", reference.sampling.topP);
    await page.getByLabel("Seed").fill(String(reference.sampling.seed));
    await page.getByLabel("Begin with").fill(reference.prompt);
    await page.getByLabel("at reading pace").uncheck();
    await page.getByRole("button", { name: "Continue" }).click();
    await until(page, (n) => Number(document.getElementById("count").textContent.replace(/,/g, "")) >= n, reference.tokens.length);
    await page.getByRole("button", { name: "Stop" }).click().catch(() => {});
    await page.waitForSelector("#go:has-text('Continue')");
    const written = await page.textContent("#written");
    assert.equal(written.slice(0, expected.length), expected);
    assert.equal(await page.textContent("#given"), reference.prompt);
    assert.match(await page.textContent("#speed"), /^[\d.,]+( k)?$/);
    assert.deepEqual(wrong, []);
    await context.close();
  },

  async "keys start and stop it, and it goes on where it stopped"() {
    const { page, wrong, context } = await opened(DESK);
    await page.getByLabel("Begin with").focus();
    await page.keyboard.press("End");
    await page.keyboard.type(" what");
    await page.keyboard.press("Control+Enter");
    await until(page, () => document.getElementById("written").textContent.length > 8);
    await page.keyboard.press("Escape");
    await page.waitForSelector("#go:has-text('Continue')");
    const first = await page.textContent("#written");
    await page.waitForTimeout(150);
    assert.equal(await page.textContent("#written"), first, "it stopped");
    await page.getByRole("button", { name: "Continue" }).press("Enter");
    await until(page, (length) => document.getElementById("written").textContent.length > length + 5, first.length);
    assert.ok((await page.textContent("#written")).startsWith(first));
    assert.equal(await page.textContent("#given"), "ROMEO: what");
    await page.getByRole("button", { name: "Stop" }).click();
    await page.getByRole("button", { name: "Start over" }).click();
    assert.equal(await page.textContent("#page"), "");
    assert.deepEqual(wrong, []);
    await context.close();
  },

  async "the stream's class follows what the sensor does"() {
    const { page, wrong, context } = await opened(DESK);
    await page.getByLabel("Rows a second").selectOption("120");
    for (const name of ["shaking", "resting", "running"]) {
      await page.getByRole("button", { name, exact: true }).click();
      await until(page, (name) => document.querySelector(".likeliest .name")?.textContent === name && parseInt(document.querySelector(".likeliest .value").textContent) > 80, name);
    }
    assert.match(await page.textContent("#stream-status"), /running/);
    await page.getByRole("button", { name: "Pause" }).click();
    await page.waitForTimeout(200);
    const rows = await number(page, "#rows");
    await page.waitForTimeout(200);
    assert.equal(await number(page, "#rows"), rows, "it pauses");
    const drawn = await page.evaluate(() => {
      const canvas = document.getElementById("plot");
      return new Set(new Uint32Array(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size;
    });
    assert.ok(drawn > 20, `the picture has ${drawn} colours`);
    assert.deepEqual(wrong, []);
    await context.close();
  },

  async "the forecaster draws what is to come"() {
    const { page, wrong, context } = await opened(DESK);
    await page.getByRole("button", { name: "Sea temperature" }).click();
    await until(page, () => /to/.test(document.querySelector("#bars .value")?.textContent) && Number(document.getElementById("rows").textContent) > 30);
    const [ahead] = await page.locator("#bars .value").allTextContents();
    const value = parseFloat(ahead);
    assert.ok(value > 15 && value < 32, `degrees of a sea: ${ahead}`);
    assert.deepEqual(wrong, []);
    await context.close();
  },

  async "files of one's own, good and bad, by drop and by dialog"() {
    const { page, wrong, context } = await opened(DESK);
    const notice = page.getByRole("alert");
    const good = await readFile(join(models, "temperature.minrnn"));
    const damaged = Buffer.from(good);
    damaged[damaged.length >> 1] ^= 1;
    for (const [name, bytes] of [["damaged.minrnn", damaged], ["cut.minrnn", good.subarray(0, 500)], ["empty.minrnn", Buffer.alloc(0)], ["notes.minrnn", Buffer.from("just a text")]]) {
      await dropped(page, [[name, bytes]]);
      await until(page, (name) => document.getElementById("notice").textContent.startsWith(`${name}: `), name);
      const sentence = await notice.textContent();
      assert.ok(sentence.length > name.length + 25, sentence);
      console.log(`    ${sentence}`);
    }
    assert.match(await page.textContent("#stream-model"), /^sensors/, "what was open stays open");
    await dropped(page, [["temperature.csv"], ["temperature.minrnn"]]);
    await until(page, () => /^temperature\.minrnn/.test(document.getElementById("stream-model").textContent) && Number(document.getElementById("rows").textContent) > 5);
    await page.setInputFiles("#file", { name: "other.csv", mimeType: "text/csv", buffer: Buffer.from("day,rain\n1,2\n") });
    await until(page, () => /no column 'temperature'/.test(document.getElementById("notice").textContent));
    console.log(`    ${await notice.textContent()}`);
    await page.setInputFiles("#file", ["temperature.csv", "temperature.minrnn"].map((name) => join(models, name)));
    await until(page, () => /temperature\.csv feeds temperature\.minrnn/.test(document.getElementById("notice").textContent));
    await page.setInputFiles("#file", join(models, "shakespeare.minrnn"));
    await until(page, () => /shakespeare\.minrnn is open/.test(document.getElementById("notice").textContent));
    await page.getByLabel("Begin with").fill("Ωmega");
    await page.getByRole("button", { name: "Continue" }).click();
    await until(page, () => /Ω/.test(document.getElementById("notice").textContent));
    console.log(`    ${await notice.textContent()}`);
    assert.deepEqual(wrong, []);
    await context.close();
  },

  async "a model of pieces is refused, and a table of sequences read one after the other"() {
    const { page, wrong, context } = await opened(DESK);
    const notice = page.getByRole("alert");
    const written = await page.textContent("#text-model");
    await dropped(page, [["pieces.minrnn"]]);
    await until(page, () => /^pieces\.minrnn: .*BPE/.test(document.getElementById("notice").textContent));
    console.log(`    ${await notice.textContent()}`);
    assert.equal(await page.textContent("#text-model"), written, "what was open stays open");
    await page.getByLabel("Rows a second").selectOption("4");
    await dropped(page, [["life.minrnn"], ["machines.csv"]]);
    // Two rows of each machine, interleaved: after an even number of rows, the last one was the second of a machine.
    const expected = reference.lives.map((life) => Number(life.toPrecision(4)));
    await until(page, (expected) => {
      const [rows, shown] = [document.getElementById("rows"), document.querySelector("#bars .value")];
      return Number(rows.textContent) > 2 && expected.some((life) => Math.abs(Number(shown.textContent.replace(",", "")) / life - 1) < 1e-3);
    }, expected);
    assert.equal(await page.textContent("#bars .name"), "life");
    assert.match(await page.textContent("#caption"), /heat, noise.*life/s);
    assert.deepEqual(wrong, []);
    await context.close();
  },

  async "no row of one sequence is read with those of another, however fast they come"() {
    const { page, wrong, context } = await opened(DESK);
    await page.evaluate(() => {
      window.calls = [];
      const post = Worker.prototype.postMessage;
      Worker.prototype.postMessage = function (message, ...others) {
        if (message.name === "rows") window.calls.push(message.argument);
        return post.call(this, message, ...others);
      };
    });
    await page.getByLabel("Rows a second").selectOption("120");
    // A machine's heat is the step, its noise the number of the sequence.
    const lines = [0, 1, 2].flatMap((machine) => [0, 1, 2, 3, 4].map((step) => `m${machine},${step},${machine}`));
    await dropped(page, [["life.minrnn"], ["own.csv", Buffer.from(`machine,heat,noise\n${lines.join("\n")}\n`)]]);
    await until(page, () => Number(document.getElementById("rows").textContent) > 100);
    const calls = await page.evaluate(() => window.calls.slice(-20));
    assert.ok(calls.length > 5 && calls.some(({ rows }) => rows.length > 1), "several rows at once");
    for (const { rows, begins } of calls) {
      assert.ok(rows.every(([step, machine], at) => machine === rows[0][1] && step === rows[0][0] + at), JSON.stringify(rows));
      assert.equal(begins, rows[0][0] === 0, JSON.stringify(rows));
    }
    assert.deepEqual(wrong, []);
    await context.close();
  },

  async "a file that is no model is refused by its first bytes, and a model is read whole"() {
    const { page, wrong, context } = await opened(DESK);
    await page.evaluate(() => {
      window.read = [];
      const { arrayBuffer } = Blob.prototype;
      Blob.prototype.arrayBuffer = function () {
        window.read.push(this.size);
        return arrayBuffer.call(this);
      };
    });
    await page.setInputFiles("#file", { name: "film.minrnn", mimeType: "video/mp4", buffer: Buffer.alloc(5_000_000, 7) });
    await until(page, () => document.getElementById("notice").textContent.startsWith("film.minrnn: "));
    assert.match(await page.textContent("#notice"), /does not begin like one/);
    assert.deepEqual(await page.evaluate(() => window.read), [24]);
    const model = await readFile(join(models, "temperature.minrnn"));
    await page.setInputFiles("#file", join(models, "temperature.minrnn"));
    await until(page, () => /temperature\.minrnn is open/.test(document.getElementById("notice").textContent));
    assert.deepEqual(await page.evaluate(() => window.read), [24, 24, model.length]);
    assert.deepEqual(wrong, []);
    await context.close();
  },

  async "a long prompt is read in turns: it can be stopped, and the stream goes on meanwhile"() {
    const { page, wrong, context } = await opened(DESK);
    // `fill` would time out on so long a text.
    await page.getByLabel("Begin with").evaluate((area) => (area.value = "ROMEO: what is the matter?\n".repeat(4000)));
    await page.getByRole("button", { name: "Continue" }).click();
    await until(page, () => /^Reading … \d+ %$/.test(document.getElementById("text-status").textContent));
    const rows = await number(page, "#rows");
    await until(page, (rows) => Number(document.getElementById("rows").textContent.replace(/,/g, "")) > rows + 10, rows);
    await page.getByRole("button", { name: "Stop" }).click();
    await page.waitForSelector("#go:has-text('Continue')", { timeout: 2000 });
    assert.equal(await page.textContent("#written"), "");
    assert.match(await page.textContent("#text-status"), /from its beginning/);
    await page.getByLabel("Begin with").fill("ROMEO:");
    await page.getByRole("button", { name: "Continue" }).click();
    await until(page, () => document.getElementById("written").textContent.length > 8);
    assert.equal(await page.textContent("#given"), "ROMEO:");
    assert.deepEqual(wrong, []);
    await context.close();
  },

  async "all of it is reached and worked by keys"() {
    const { page, wrong, context } = await opened(DESK);
    const reached = [];
    for (let i = 0; i < 40; i++) {
      await page.keyboard.press("Tab");
      const { name, ring } = await page.evaluate(() => {
        const one = document.activeElement;
        return { name: one.id || one.dataset.example || one.textContent, ring: getComputedStyle(one).outlineStyle };
      });
      if (name === reached[0] || (await page.evaluate(() => document.activeElement === document.body))) break;
      assert.equal(ring, "solid", `${name} shows that it has the focus`);
      reached.push(name);
    }
    const stops = ["open", "prompt", "go", "anew", "slowly", "temperature", "top-k", "top-p", "seed", "page", "sensors", "temperature", "play", "restart", "rate"];
    assert.deepEqual(reached.filter((name) => stops.includes(name)), stops.filter((name) => name !== "anew"), "in the order they are read; there is nothing to start over yet");
    const focus = (selector) => page.locator(selector).focus();
    await focus("#play");
    await page.keyboard.press("Space");
    assert.equal(await page.textContent("#play"), "Play");
    await page.keyboard.press("Enter");
    assert.equal(await page.textContent("#play"), "Pause");
    await focus("#movements button:has-text('shaking')");
    await page.keyboard.press("Enter");
    await until(page, () => document.querySelector(".likeliest .name")?.textContent === "shaking");
    await focus("#temperature");
    await page.keyboard.press("Home");
    assert.equal(await page.textContent("#temperature-value"), "off");
    await page.keyboard.press("ArrowRight");
    assert.equal(await page.textContent("#temperature-value"), "0.05");
    await focus("#slowly");
    await page.keyboard.press("Space");
    assert.equal(await page.isChecked("#slowly"), false);
    assert.deepEqual(wrong, []);
    await context.close();
  },

  async "a state that the trainer began and C carried on goes on here"() {
    const { page, wrong, context } = await opened(DESK);
    for (const [name, { browser: leg }] of Object.entries(JSON.parse(await readFile(join(round, "legs.json"), "utf8")))) {
      const [packed, state] = await Promise.all([`${name}.minrnn`, `${name}.c`].map(async (file) => (await readFile(join(round, file))).toString("base64")));
      const { logits, saved } = await page.evaluate(async ({ packed, state, tokens }) => {
        const { load } = await import("./minrnn.js");
        const bytes = (base64) => Uint8Array.from(atob(base64), (sign) => sign.charCodeAt(0));
        const session = (await load(bytes(packed))).restore(bytes(state));
        const logits = tokens.map((token) => Array.from(session.step(token)));
        return { logits, saved: btoa(String.fromCharCode(...session.save())) };
      }, { packed, state, tokens: leg.tokens });
      const apart = Math.max(...leg.logits.flatMap((row, i) => row.map((number, j) => Math.abs(logits[i][j] - number) / Math.max(1, Math.abs(number)))));
      console.log(`    ${name} in Chromium: at most ${apart.toExponential(1)} apart`);
      assert.ok(apart <= 1e-5, `${name}: ${apart}`);
      await writeFile(join(round, `${name}.browser`), Buffer.from(saved, "base64"));
    }
    assert.deepEqual(wrong, []);
    await context.close();
  },

  async "everything has a name, and nothing is wider than the screen"() {
    for (const [name, size] of Object.entries({ desk: DESK, phone: PHONE })) {
      for (const colorScheme of ["light", "dark"]) {
        const { page, wrong, context } = await opened({ ...size, colorScheme });
        await page.getByRole("button", { name: "Continue" }).click();
        await page.waitForTimeout(3500);
        const { width, unnamed, small } = await page.evaluate(() => {
          const named = (one) => one.labels?.length || one.getAttribute("aria-label") || one.textContent.trim();
          const all = [...document.querySelectorAll("button, input, select, textarea, canvas")].filter((one) => one.checkVisibility() || one.type === "file");
          const small = all.filter((one) => one.matches("button") && one.getBoundingClientRect().height < 32);
          return { width: document.documentElement.scrollWidth, unnamed: all.filter((one) => !named(one)).map((one) => one.outerHTML), small: small.map((one) => one.outerHTML) };
        });
        assert.ok(width <= size.viewport.width, `${name}: ${width} wide`);
        assert.deepEqual(unnamed, []);
        assert.deepEqual(small, []);
        assert.deepEqual(wrong, []);
        await page.screenshot({ path: join(pictures, `${name}-${colorScheme}.png`), fullPage: true });
        if (colorScheme === "dark") {
          await page.getByRole("button", { name: "Sea temperature" }).click();
          await page.waitForTimeout(8000);
          await page.screenshot({ path: join(pictures, `${name}-forecast.png`), fullPage: true });
        }
        await context.close();
      }
    }
  },
};

let failed = 0;
for (const [name, test] of Object.entries(tests)) {
  try {
    await test();
    console.log(`ok   ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAIL ${name}\n${error.stack}`);
  }
}
await browser.close();
server.close();
process.exit(failed ? 1 : 0);
