// The server's page in Chromium: it lists the model, continues a text, stops, and says what is wrong.
//
//     node page.mjs http://127.0.0.1:8080 PICTURE.png

import assert from "node:assert/strict";
import { chromium } from "playwright-core";

const [address, picture] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 900, height: 760 } });
const complaints = [];
page.on("console", message => message.type() === "error" && complaints.push(message.text()));
page.on("pageerror", error => complaints.push(String(error)));
await page.goto(address);
await page.waitForFunction(() => document.getElementById("model").value !== "");
const said = () => page.textContent("#said");
const until = pattern => page.waitForFunction(source => new RegExp(source).test(document.getElementById("said").textContent), pattern);

await page.fill("#text", "ROMEO:");
await page.fill("#seed", "3");
await page.click("#go");
await until("^200 tokens in");
const text = await page.inputValue("#text");
assert.equal(text.length, 206);
assert.ok(text.startsWith("ROMEO:"));
await page.screenshot({ path: picture });
assert.deepEqual(complaints, []);

await page.fill("#max_tokens", "1000000");
await page.click("#go");
await page.waitForFunction(length => document.getElementById("text").value.length > length, text.length);
await page.click("#go");
await until("^stopped$");

await page.fill("#text", "日");
await page.click("#go");
await until("日");
assert.match(await said(), /which is not among the 65 characters/);

// Of the models that are served, those of text are offered; where there is none, that is said.
const listed = async data => {
  await page.route("**/v1/models", route => route.fulfill({ json: { object: "list", data } }));
  await page.reload();
};
const table = { id: "load", about: "the next 3 values of 'load'" };
await listed([table, { id: "poems", vocab_size: 65 }]);
await page.waitForFunction(() => document.getElementById("model").value === "poems");
assert.equal(await page.locator("#model option").count(), 1);
await listed([table]);
await until("^no model of text is served here");
assert.equal(await page.locator("#model option").count(), 0);
console.log("continued, stopped, and refused with a sentence; tables are not offered");
await browser.close();
