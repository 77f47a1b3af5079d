// Makes the types of what crosses the wire, which git does not have, of the service's OpenAPI document on standard input.
//   python -m mlp_hub.api.openapi | node wire.mjs    writes them
//   node wire.mjs --made                             fails if nothing has made them yet, and names the command
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";

/** `rootDirs` of tsconfig.json puts this folder over `src`, so that sources import "../service/wire". */
const file = join(dirname(fileURLToPath(import.meta.url)), "build/types/core/service/wire.ts");
const how = "make wire, or by hand: .venv/bin/python -m mlp_hub.api.openapi | npm --prefix widgets run wire";

function fail(what) {
  console.error(what);
  process.exit(1);
}

if (process.argv.includes("--made")) {
  if (!existsSync(file)) fail(`The types of the wire are not made yet: ${how}`);
  process.exit();
}
if (process.stdin.isTTY) fail(`The OpenAPI document comes on standard input: ${how}`);
const document = await text(process.stdin);
if (!document.trim()) fail(`Standard input has no OpenAPI document: ${how}`);
const { compile } = await import("json-schema-to-typescript");
const api = JSON.parse(document.replaceAll("#/components/schemas/", "#/definitions/"), (_, value) =>
  // an object of any fields: else it would be one of none
  value?.type === "object" && !value.properties ? { additionalProperties: true, ...value } : value,
);
const schemas = api.components.schemas;
const operations = Object.values(api.paths).flatMap((methods) => Object.values(methods));

/** An answer holds all fields, those with a default too; in a request they may be left out. */
function complete(part) {
  for (const [, name] of JSON.stringify(part).matchAll(/"#\/definitions\/(\w+)"/g)) {
    const schema = schemas[name];
    if (schema.complete) continue;
    Object.assign(schema, { complete: true });
    schema.required = Object.keys(schema.properties ?? {}).filter((key) => schema.required?.includes(key) || "default" in schema.properties[key]);
    complete(schema);
  }
}
complete(operations.map((operation) => operation.responses));
complete(api.components.responses);

const named = { ...schemas, Frame: api.paths["/users/{user}/jobs/{job}:stream"].get.responses[101].content["application/json"].schema };
for (const schema of Object.values(named)) if (schema.description) schema.description = schema.description.replaceAll(/\n +/g, "\n");
const options = { additionalProperties: false, bannerComment: "", style: { printWidth: 140 }, unreachableDefinitions: true, ignoreMinAndMaxItems: true };
const types = await compile({ title: "Wire", type: "object", definitions: named }, "Wire", options);
const made = `/** Objects of the REST contract as they cross the wire: made from the OpenAPI document by \`make wire\`, not by hand. */\n${types
  .replace("export interface Wire {}\n", "")
  .replaceAll(/(\n \*)?\n \* This interface was referenced by `Wire`'s JSON-Schema\n \* via the `definition` "\w+"\./g, "")
  .replaceAll(/(\n \*)?\n \* via the `definition` "\w+"\./g, "")}`;

mkdirSync(dirname(file), { recursive: true });
writeFileSync(file, made);
