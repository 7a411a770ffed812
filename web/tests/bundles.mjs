// The package as installed in a project: its types under tsc, and bundles by esbuild that run in Chromium.
//   node bundles.mjs TOOLS PROJECT MODELS     PROJECT has node_modules/minrnn
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { browse, serve } from "./browser-host.mjs";

const [tools, project, models] = process.argv.slice(2).map((path) => resolve(path));
const SAMPLING = { temperature: 0.8, topK: 40, seed: 1, limit: 40 };
const out = join(project, "out");
await mkdir(out, { recursive: true });

await writeFile(
  join(project, "use.ts"),
  `import { load, MinrnnError, type Session } from "minrnn";
export async function use(bytes: Uint8Array<ArrayBuffer>): Promise<number> {
  const model = await load(bytes);
  const session: Session = model.session();
  for (const { text, token } of session.generate("ROMEO:", ${JSON.stringify(SAMPLING)})) console.log(text, token);
  if (model.table?.task === "classify") return model.table.classes.length;
  if (model.table?.task === "forecast") return model.table.horizon;
  try {
    session.save();
  } catch (error) {
    if (error instanceof MinrnnError) return error.status ?? 0;
  }
  return model.table?.mayMiss ? 1 : 0;
}
`,
);
const tsc = join(tools, "node_modules/.bin/tsc");
execFileSync(tsc, ["--noEmit", "--strict", "--target", "es2022", "--module", "nodenext", "--moduleResolution", "nodenext", "--lib", "es2022,dom,esnext", "use.ts"], { cwd: project, stdio: "inherit" });
console.log("ok   the types fit a program");

const { load } = await import(pathToFileURL(join(project, "node_modules/minrnn/minrnn.js")));
const packed = await readFile(join(models, "shakespeare.minrnn"));
const expected = Array.from((await load(packed)).session().generate("ROMEO:", SAMPLING), ({ text }) => text).join("");

const program = (imported, options) => `import { load } from "minrnn";
${imported}
globalThis.answer = (async () => {
  const model = await load(await (await fetch("shakespeare.minrnn")).arrayBuffer(), ${options});
  return Array.from(model.session().generate("ROMEO:", ${JSON.stringify(SAMPLING)}), ({ text }) => text).join("");
})();
`;
await writeFile(join(project, "beside.js"), program("", "{}"));
await writeFile(join(project, "named.js"), program('import wasm from "minrnn/minrnn.wasm";', "{ wasm }"));
await copyFile(join(project, "node_modules/minrnn/minrnn.wasm"), join(out, "minrnn.wasm"));
await copyFile(join(models, "shakespeare.minrnn"), join(out, "shakespeare.minrnn"));

const esbuild = createRequire(join(tools, "package.json"))("esbuild");
const [{ server, home }, browser] = await Promise.all([serve(out), browse(tools)]);
for (const entry of ["beside", "named"]) {
  for (const format of ["esm", "iife"]) {
    for (const minify of [false, true]) {
      const name = `${entry}-${format}${minify ? "-small" : ""}`;
      // For a script that is not a module, the WebAssembly module is beside the page.
      await esbuild.build({ entryPoints: [join(project, `${entry}.js`)], outfile: join(out, `${name}.js`), bundle: true, format, minify, loader: { ".wasm": "file" }, logOverride: { "empty-import-meta": "silent" } });
      await writeFile(join(out, `${name}.html`), `<!doctype html><script ${format === "esm" ? 'type="module" ' : ""}src="${name}.js"></script>`);
      const page = await browser.newPage();
      await page.goto(`${home}${name}.html`);
      assert.equal(await page.evaluate(() => globalThis.answer), expected, name);
      await page.close();
    }
  }
}
await browser.close();
server.close();
console.log("ok   bundles write what node does");
