// Bundles the proxy into dist/: one file that needs node and nothing else, with the licences of what is in it.

import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";

const here = path.dirname(fileURLToPath(import.meta.url));
const dist = path.join(here, "dist");
fs.rmSync(dist, { recursive: true, force: true });

// The proxy's own logger would bring 20 packages and 10 MB of memory for what is one line here.
const ourLogger = {
  name: "our-logger",
  setup(esbuild) {
    esbuild.onResolve({ filter: /^\.\/log\.js$/ }, () => ({ path: path.join(here, "src/log.mjs") }));
  },
};

const result = await build({
  absWorkingDir: here,
  entryPoints: ["src/main.mjs"],
  outfile: "dist/proxy.mjs",
  bundle: true,
  platform: "node",
  format: "esm",
  target: "node20",
  legalComments: "none",
  metafile: true,
  alias: { "prom-client": "./src/left_out.mjs" },
  plugins: [ourLogger],
  // The packages in it that are CommonJS call require for node's own modules.
  banner: { js: 'import { createRequire as makeRequire } from "node:module"; const require = makeRequire(import.meta.url);' },
  logOverride: { "import-is-undefined": "silent" },
});

const packages = new Set();
for (const input of Object.keys(result.metafile.inputs)) {
  const found = /^(node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(input);
  if (found) packages.add(found[1]);
}
const texts = [...packages].sort().map((folder) => {
  const about = JSON.parse(fs.readFileSync(path.join(here, folder, "package.json"), "utf8"));
  const file = fs.readdirSync(path.join(here, folder)).find((name) => /^licen[sc]e/i.test(name));
  if (!file) throw new Error(`${about.name} ${about.version} has no licence file`);
  return `${about.name} ${about.version} (${about.license})\n\n${fs.readFileSync(path.join(here, folder, file), "utf8").trim()}\n`;
});
fs.writeFileSync(path.join(dist, "LICENSES.txt"), texts.join(`\n${"-".repeat(78)}\n\n`));
console.log(`proxy: ${packages.size} packages, ${Math.round(fs.statSync(path.join(dist, "proxy.mjs")).size / 1024)} KiB`);
