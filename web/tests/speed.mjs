// Steps of a text model in node, or in a page of headless Chromium: the CPU time of a step, in microseconds.
//   node speed.mjs node DIST MODEL WARM-UP STEPS
//   node speed.mjs chromium DIST MODEL WARM-UP STEPS TOOLS     processor time of the page's process
import { readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { browse, serve } from "./browser-host.mjs";

const [host, dist, model, warmUp, steps, tools] = process.argv.slice(2);
const [n, before] = [Number(steps), Number(warmUp)];
// Gives background compilation of the module time to finish.
const rest = () => new Promise((ready) => setTimeout(ready, 700));

async function inNode() {
  const { load } = await import(pathToFileURL(resolve(dist, "minrnn.js")));
  const session = (await load(await readFile(model))).session();
  const run = (count) => {
    for (let i = 0; i < count; i++) session.step(i % 60);
  };
  run(before);
  await rest();
  const start = process.cpuUsage();
  run(n);
  const { user, system } = process.cpuUsage(start);
  return (user + system) / n;
}

async function inChromium() {
  const [{ server, home }, browser] = await Promise.all([serve(resolve(dist)), browse(resolve(tools))]);
  const page = await browser.newPage();
  // A page of its own, in which nothing else runs.
  await page.goto(`${home}package.json`);
  const packed = (await readFile(model)).toString("base64");
  await page.evaluate(async ({ home, packed }) => {
    const { load } = await import(`${home}minrnn.js`);
    const session = (await load(Uint8Array.from(atob(packed), (sign) => sign.charCodeAt(0)))).session();
    window.run = (count) => {
      for (let i = 0; i < count; i++) session.step(i % 60);
    };
  }, { home, packed });
  const system = await browser.newBrowserCDPSession();
  const spent = async () => {
    const { processInfo } = await system.send("SystemInfo.getProcessInfo");
    return processInfo.filter(({ type }) => type === "renderer").reduce((sum, { cpuTime }) => sum + cpuTime, 0);
  };
  const run = (count) => page.evaluate((count) => window.run(count), count);
  await run(before);
  await rest();
  const start = await spent();
  await run(n);
  const end = await spent();
  await browser.close();
  server.close();
  return ((end - start) * 1e6) / n;
}

console.log(host === "node" ? await inNode() : await inChromium());
