// Finds what the front end says: the calls t("...") and n("one", "several", count). Writes {messages, wrong} as JSON.
// The sources go through esbuild first, so that what is parsed is plain JavaScript, whatever stands in TSX.
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parse } from "acorn";
import { simple } from "acorn-walk";
import { transformSync } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const SENTENCES = { t: 1, n: 2 };
const messages = [];
const wrong = [];

/** The text of a literal; undefined for what is made while the program runs. */
function literal(node) {
  if (node?.type === "Literal" && typeof node.value === "string") return node.value;
  if (node?.type === "TemplateLiteral" && node.expressions.length === 0) return node.quasis[0].value.cooked;
  if (node?.type === "BinaryExpression" && node.operator === "+") {
    const [left, right] = [literal(node.left), literal(node.right)];
    return left === undefined || right === undefined ? undefined : left + right;
  }
  return undefined;
}

/** Whether a file has these names from the module of languages: `t` may be something else in another. */
const speaks = (source, name) => new RegExp(`import\\s*(?:type\\s*)?\\{[^}]*\\b${name}\\b[^}]*\\}\\s*from\\s*"[^"]*/language"`).test(source);

for (const name of readdirSync(join(here, "src"), { recursive: true }).sort()) {
  if (!/\.tsx?$/.test(name) || name.endsWith(".d.ts")) continue;
  const source = readFileSync(join(here, "src", name), "utf8");
  const own = name === join("core", "format", "language.ts");
  const { code } = transformSync(source, { loader: name.endsWith("x") ? "tsx" : "ts", jsx: "automatic", jsxImportSource: "preact", charset: "utf8" });
  simple(parse(code, { ecmaVersion: "latest", sourceType: "module" }), {
    CallExpression({ callee, arguments: given }) {
      const count = callee.type === "Identifier" && Object.hasOwn(SENTENCES, callee.name) ? SENTENCES[callee.name] : 0;
      if (!count || !(own || speaks(source, callee.name))) return;
      const [one, several] = given.slice(0, count).map(literal);
      if (one === undefined || (count === 2 && several === undefined)) {
        wrong.push(`widgets/src/${name}: ${code.slice(callee.start, given[0]?.end ?? callee.end)}) takes a literal, its values come as arguments`);
        return;
      }
      messages.push({ one, ...(count === 2 ? { several } : {}) });
    },
  });
}
process.stdout.write(JSON.stringify({ messages, wrong }));
