// Writes the types of what crosses the wire from the service's OpenAPI document on standard input.
//   node wire.mjs FILE            writes them
//   node wire.mjs FILE --check    fails where they are not what would be written
import { readFileSync, writeFileSync } from "node:fs";
import { text } from "node:stream/consumers";
import { compile } from "json-schema-to-typescript";

const [file, check] = process.argv.slice(2);
const api = JSON.parse((await text(process.stdin)).replaceAll("#/components/schemas/", "#/definitions/"), (_, value) =>
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
const made = `/** Objects of the REST contract as they cross the wire: made from the OpenAPI document by \`make docs\`, not by hand. */\n${types
  .replace("export interface Wire {}\n", "")
  .replaceAll(/(\n \*)?\n \* This interface was referenced by `Wire`'s JSON-Schema\n \* via the `definition` "\w+"\./g, "")
  .replaceAll(/(\n \*)?\n \* via the `definition` "\w+"\./g, "")}`;

if (!check) writeFileSync(file, made);
else if (readFileSync(file, "utf8") !== made) {
  console.error(`${file} is out of date: run \`make docs\``);
  process.exitCode = 1;
}
