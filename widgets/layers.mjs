// Checks the layers of the front end: which room imports which, circles of imports, and the size of each room.
//   node layers.mjs          the sources beside this file
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));

/** Layers of rooms below src, the highest first. A file imports from its own room and from lower layers. */
const LAYERS = [
  ["."],
  ["lab", "panel"],
  ["panel/platform"],
  ["panel/teams"],
  ["panel/jobs"],
  ["panel/stored"],
  ["panel/accounts", "panel/apps"],
  ["panel/shared"],
  ["components/monitor"],
  ["components/charts"],
  ["components/basics"],
  ["core/accounts", "core/platform", "core/stream"],
  ["core/apps", "core/charts", "core/jobs", "core/stored", "core/teams"],
  ["core/service"],
  ["core/format"],
];
/** The side panel of JupyterLab is bundled without the pages. */
const NEVER = [["lab", "panel"]];
/** Parts that compute, and import no package: their tests need no browser. */
const PURE = "core";
const MOST_FILES = 20;

const IMPORTS = /^(?:import|export)\b[^;"]*?\bfrom\s*"([^"]+)"|^import\s*"([^"]+)"|\bimport\("([^"]+)"\)/gm;
const within = (room, part) => room === part || room.startsWith(`${part}/`);
/** Files below a folder, as paths from it. */
const files = (top) =>
  readdirSync(join(here, top), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(join(here, top), join(entry.parentPath, entry.name)));

const sources = files("src").filter((name) => /\.tsx?$/.test(name) && !name.endsWith(".d.ts"));
const levels = new Map(LAYERS.flatMap((rooms, level) => rooms.map((room) => [room, level])));
const edges = new Map();
const wrong = [];

for (const name of sources) {
  const room = dirname(name);
  if (!levels.has(room)) wrong.push(`src/${name} is in a room without a layer; give ${room} its place in layers.mjs`);
  const targets = [];
  for (const [, from, bare, late] of readFileSync(join(here, "src", name), "utf8").matchAll(IMPORTS)) {
    const asked = from ?? bare ?? late;
    if (!asked.startsWith(".")) {
      if (within(room, PURE)) wrong.push(`src/${name} imports ${asked}; ${PURE} imports no package`);
      continue;
    }
    const path = join(room, asked);
    const target = [`${path}.ts`, `${path}.tsx`].find((one) => existsSync(join(here, "src", one)));
    if (!target) continue;
    targets.push(target);
    const other = dirname(target);
    if (NEVER.some(([one, another]) => within(room, one) && within(other, another))) wrong.push(`src/${name} imports ${target}, which is in another bundle`);
    else if (other !== room && !(levels.get(room) < levels.get(other))) wrong.push(`src/${name} imports ${target}; ${room} is not above ${other}`);
  }
  edges.set(name, targets);
}

/** Reports each circle once, from the file that closes it. */
const done = new Set();
function follow(name, way) {
  if (way.includes(name)) wrong.push(`Imports go in a circle: ${[...way.slice(way.indexOf(name)), name].join(" > ")}`);
  if (done.has(name) || way.includes(name)) return;
  for (const target of edges.get(name) ?? []) follow(target, [...way, name]);
  done.add(name);
}
for (const name of sources) follow(name, []);

const sizes = new Map();
for (const top of ["src", "test"].filter((one) => existsSync(join(here, one)))) {
  for (const name of files(top)) {
    const room = join(top, dirname(name));
    sizes.set(room, (sizes.get(room) ?? 0) + 1);
  }
}
for (const [room, size] of sizes) if (size > MOST_FILES) wrong.push(`${room} has ${size} files, more than ${MOST_FILES}; divide it`);
for (const room of levels.keys()) if (!sources.some((name) => dirname(name) === room)) wrong.push(`${room} of layers.mjs has no files; remove it`);

for (const one of wrong) console.error(one);
process.exitCode = wrong.length ? 1 : 0;
