// What tests in Chromium share: a file server for the page on the loopback address, and the browser.
//   CHROMIUM: the browser's program, by default /usr/bin/chromium
import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { extname, join } from "node:path";

const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".wasm": "application/wasm", ".csv": "text/csv", ".json": "application/json" };

/** Serves the folder `dist`; returns the server and its address. */
export async function serve(dist) {
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
  return { server, home: `http://127.0.0.1:${server.address().port}/` };
}

/** A headless Chromium, run by the playwright-core that is installed in `tools`. */
export function browse(tools) {
  const { chromium } = createRequire(join(tools, "package.json"))("playwright-core");
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
}
