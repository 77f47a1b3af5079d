// Bundles the widget (one ES module for anywidget) and the panel (one script, one style sheet for the pages).
//   node build.mjs           the bundles, minified, with their sizes
//   node build.mjs --tests   the tests of the pure logic, for `node --test build/test/`
import { readdirSync, readFileSync, rmSync } from "node:fs";
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

async function bundles() {
  const widget = "mlp_widgets/static";
  const panel = "../hub/mlp_hub/web/static";
  await Promise.all([
    build({ ...common, minify: true, format: "esm", entryPoints: { job_monitor: "src/widget.tsx" }, outdir: widget }),
    build({ ...common, minify: true, format: "iife", entryPoints: { panel: "src/panel/main.tsx" }, outdir: panel }),
  ]);
  for (const name of [`${widget}/job_monitor.js`, `${widget}/job_monitor.css`, `${panel}/panel.js`, `${panel}/panel.css`]) {
    const bytes = readFileSync(join(here, name));
    const kib = (n) => `${(n / 1024).toFixed(1)} KiB`;
    console.log(`${name.replace("../", "").padEnd(44)} ${kib(bytes.length).padStart(10)}  gzip ${kib(gzipSync(bytes).length)}`);
  }
}

async function tests() {
  rmSync(join(here, "build/test"), { recursive: true, force: true });
  const names = readdirSync(join(here, "test")).filter((name) => name.endsWith(".test.ts"));
  await build({
    ...common,
    format: "esm",
    platform: "node",
    sourcemap: "inline",
    entryPoints: names.map((name) => `test/${name}`),
    outdir: "build/test",
    outExtension: { ".js": ".mjs" },
  });
}

await (process.argv.includes("--tests") ? tests() : bundles());
