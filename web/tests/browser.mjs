// The page in a headless Chromium: what a person does with it, at the width of a desk and of a phone, in light and dark.
//   CHROMIUM=/usr/bin/chromium node browser.mjs DIST MODELS REFERENCE PICTURES
import assert from "node:assert/strict";
import { readFile, mkdir } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const [dist, models, referencePath, pictures] = process.argv.slice(2).map((path) => resolve(path));
const reference = JSON.parse(await readFile(referencePath, "utf8"));
await mkdir(pictures, { recursive: true });

const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".wasm": "application/wasm", ".csv": "text/csv" };
const server = createServer(async (request, response) => {
  const path = new URL(request.url, "http://localhost").pathname;
  try {
    const content = await readFile(join(dist, path === "/" ? "index.html" : path));
    response.writeHead(200, { "content-type": TYPES[extname(path) || ".html"] ?? "application/octet-stream" }).end(content);
  } catch {
    response.writeHead(404).end();
  }
}).listen(0, "127.0.0.1");
await new Promise((ready) => server.once("listening", ready));
const home = `http://127.0.0.1:${server.address().port}/`;

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});

/** Opens the page; whatever it complains about, or asks of another place, fails the test. */
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
    await page.setInputFiles("#file", join(models, "shakespeare.minrnn"));
    await until(page, () => /shakespeare\.minrnn is open/.test(document.getElementById("notice").textContent));
    await page.getByLabel("Begin with").fill("Ωmega");
    await page.getByRole("button", { name: "Continue" }).click();
    await until(page, () => /Ω/.test(document.getElementById("notice").textContent));
    console.log(`    ${await notice.textContent()}`);
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
