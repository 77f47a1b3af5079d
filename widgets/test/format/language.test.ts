import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { rich } from "../../src/components/basics/language";
import { language, languageOf, n, pieces, speak, t } from "../../src/core/format/language";
import { duration, starts } from "../../src/core/format/format";
import { word } from "../../src/core/jobs/phase";

afterEach(() => speak("en", {}));

test("English needs no catalogue, and holes are filled by their names", () => {
  assert.equal(t("Remove {user} from {tenant}?", { user: "ann", tenant: "red" }), "Remove ann from red?");
  assert.equal(t("{missing} stays"), "{missing} stays");
});

test("a plural has a form of its own for one", () => {
  assert.deepEqual([0, 1, 2, 1234].map((count) => n("1 job", "{n} jobs", count)), ["0 jobs", "1 job", "2 jobs", "1,234 jobs"]);
  assert.equal(n("1 rank, {failed} failed", "{n} ranks, {failed} failed", 4, { failed: 2 }), "4 ranks, 2 failed");
});

test("a language without a form for one has one form, in which the holes may stand in another order", () => {
  speak("zh-CN", { "1 job": ["{n} 个作业"], "Remove {user} from {tenant}?": ["从 {tenant} 移除 {user}？"] });
  assert.deepEqual([1, 2].map((count) => n("1 job", "{n} jobs", count)), ["1 个作业", "2 个作业"]);
  assert.equal(t("Remove {user} from {tenant}?", { user: "ann", tenant: "red" }), "从 red 移除 ann？");
});

test("a language with several forms takes that of its rules", () => {
  speak("pl", { "1 job": ["{n} zadanie", "{n} zadania", "{n} zadań", "{n} zadania"] });
  assert.deepEqual([1, 2, 5].map((count) => n("1 job", "{n} jobs", count)), ["1 zadanie", "2 zadania", "5 zadań"]);
});

test("a sentence that a catalogue lacks is told in English, also one that is named like a part of every object", () => {
  speak("zh-CN", { Empty: [""] });
  assert.deepEqual([t("Jobs"), t("Empty"), t("constructor"), n("1 job", "{n} jobs", 1), n("1 job", "{n} jobs", 3)], ["Jobs", "Empty", "constructor", "1 job", "3 jobs"]);
  assert.equal(language(), "zh-CN");
});

test("what fills a hole is text: braces in it are no holes, and markup is no markup", () => {
  const name = "{tenant}<b onclick='x()'>$&{user}";
  assert.equal(t("Remove {user} from {tenant}?", { user: name, tenant: "red" }), `Remove ${name} from red?`);
  assert.deepEqual(rich("Submitted {name}: {command}", { name, command: 7 }), ["Submitted ", name, ": ", 7]);
  assert.deepEqual(pieces("{toString} {a}", (hole) => hole === "a"), ["{toString}", " ", { hole: "a" }]);
});

test("words in tables, spans and times follow the language that is spoken now", () => {
  const now = Date.parse("2026-01-01T12:00:00Z");
  assert.deepEqual([word("queued"), duration(125), starts("2026-01-01T12:00:26Z", now)], ["Queued", "2 min 5 s", "in 26 s"]);
  speak("zh-CN", { Queued: ["排队中"], "{n} min": ["{n} 分钟"], "{n} s": ["{n} 秒"], "in {span}": ["{span}后"] });
  assert.deepEqual([word("queued"), duration(125), starts("2026-01-01T12:00:26Z", now)], ["排队中", "2 分钟 5 秒", "26 秒后"]);
});

test("a tag means the language that is spoken here, whatever its region", () => {
  assert.deepEqual(["zh", "zh-Hans-CN", "ZH_cn", "en-GB", "de", "", "zhx"].map(languageOf), ["zh-CN", "zh-CN", "zh-CN", "en", null, null, null]);
});
