// Bundles the monitor (an extension of JupyterLab and Notebook) and the panel (one script and one style sheet for the pages).
//   node build.mjs           the bundles, minified, with their sizes
//   node build.mjs --tests   the tests of the pure logic, for `node --test build/test/`
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createHash } from "node:crypto";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const common = {
  absWorkingDir: here,
  bundle: true,
  jsx: "automatic",
  jsxImportSource: "preact",
  target: "es2022",
  charset: "utf8",
  logLevel: "warning",
  legalComments: "none",
};

/** Catalogues by language, with a version in their address, as `languages/export.py` wrote them. */
function catalogues(...folders) {
  const found = {};
  for (const name of readdirSync(join(here, "build"))) {
    const tag = /^front\.(.+)\.json$/.exec(name)?.[1];
    if (!tag) continue;
    const content = JSON.stringify(JSON.parse(readFileSync(join(here, "build", name), "utf8")));
    found[tag] = `${name}?v=${createHash("sha256").update(content).digest("hex").slice(0, 12)}`;
    for (const folder of folders) {
      mkdirSync(join(here, folder), { recursive: true });
      writeFileSync(join(here, folder, name), content);
    }
  }
  return found;
}

async function bundles() {
  const panel = "../hub/mlp_hub/web/static";
  const lab = "build/labextension/static";
  const define = { CATALOGUES: JSON.stringify(catalogues(panel, lab)) };
  await Promise.all([
    build({ ...common, define, minify: true, format: "iife", entryPoints: { monitor: "src/lab.ts" }, outdir: lab }),
    build({ ...common, define, minify: true, format: "iife", entryPoints: { panel: "src/panel/main.tsx" }, outdir: panel }),
  ]);
  labextension();
  for (const name of [`${lab}/monitor.js`, `${lab}/monitor.css`, `${panel}/panel.js`, `${panel}/panel.css`]) {
    const bytes = readFileSync(join(here, name));
    const kib = (n) => `${(n / 1024).toFixed(1)} KiB`;
    console.log(`${name.replace("../", "").padEnd(44)} ${kib(bytes.length).padStart(10)}  gzip ${kib(gzipSync(bytes).length)}`);
  }
}

/** What tells Lab what to load: as its own builder writes it. The address changes with the version, else browsers keep an old one. */
function labextension() {
  const { version, license } = JSON.parse(readFileSync(join(here, "package.json"), "utf8"));
  const digest = createHash("sha256");
  for (const name of ["monitor.js", "monitor.css"]) digest.update(readFileSync(join(here, "build/labextension/static", name)));
  const load = `static/monitor.js?v=${digest.digest("hex").slice(0, 16)}`;
  const about = {
    name: "mlp-hub",
    version,
    license,
    description: "MLP Hub's jobs: their live monitor in cell outputs, a side panel, notifications, a form to submit",
    jupyterlab: { extension: true, mimeExtension: true, _build: { load, extension: "./extension", mimeExtension: "./mimeExtension" } },
  };
  writeFileSync(join(here, "build/labextension/package.json"), `${JSON.stringify(about, null, 2)}\n`);
}

async function tests() {
  rmSync(join(here, "build/test"), { recursive: true, force: true });
  const names = readdirSync(join(here, "test"), { recursive: true }).filter((name) => name.endsWith(".test.ts"));
  await build({
    ...common,
    format: "esm",
    platform: "node",
    sourcemap: "inline",
    entryPoints: names.map((name) => `test/${name}`),
    outbase: "test",
    outdir: "build/test",
    outExtension: { ".js": ".mjs" },
  });
}

await (process.argv.includes("--tests") ? tests() : bundles());
