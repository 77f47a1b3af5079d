import assert from "node:assert/strict";
import { test } from "node:test";
import { chainWords, detailWords, exported, filtered, NO_FILTERS, request } from "../../src/core/teams/audit";
import { clock } from "../../src/core/format/format";
import { keepingWords } from "../../src/core/jobs/keeping";
import { speak } from "../../src/core/format/language";
import type { AuditEntry, AuditHead } from "../../src/core/service/wire";

const NOW = Date.parse("2026-01-08T12:00:00Z");
const entry = (detail: Record<string, unknown>): AuditEntry => ({ id: 1, time: "2026-01-01T00:00:00Z", actor: "root", action: "tenant.update", object: "red", tenant: "red", detail });

test("only the filters of what is shown are asked for", () => {
  const f = { ...NO_FILTERS, actor: " ann ", kind: "preempted", back: "604800" };
  assert.equal(request(f, NOW), "/audit?limit=100&actor=ann&since=2026-01-01T12%3A00%3A00.000Z");
  assert.equal(request({ ...f, of: "decisions", back: "" }, NOW, "17"), "/decisions?limit=100&kind=preempted&cursor=17");
});

test("what people type is one value and no query of its own", () => {
  assert.equal(request({ ...NO_FILTERS, object: "a&limit=9#x" }, NOW), "/audit?limit=100&object=a%26limit%3D9%23x");
});

test("filters of the other list leave nothing out here", () => {
  assert.equal(filtered(NO_FILTERS), false);
  assert.equal(filtered({ ...NO_FILTERS, kind: "resized" }), false);
  assert.equal(filtered({ ...NO_FILTERS, of: "decisions", kind: "resized" }), true);
  assert.equal(filtered({ ...NO_FILTERS, back: "3600" }), true);
  assert.equal(filtered({ ...NO_FILTERS, actor: "  " }), false);
});

test("an entry's sentence comes first, and what is empty is left out", () => {
  assert.equal(detailWords(entry({ cpu: 4, message: "it fits again", was: { cpu: 2 }, none: null, description: "" }), NOW), "it fits again · cpu 4 · was cpu 2");
  assert.equal(detailWords(entry({}), NOW), "");
});

test("of a change only what changed is told, from what to what", () => {
  const before = { cpu: 3, ram: 4096, weight: 1, borrowing_limit: { cpu: 1, ram: 512 }, parent: "org", gpu_kinds: { a100: 2 } };
  const after = { cpu: 0.5, rom: 1024 ** 3, weight: 1, borrowing_limit: { cpu: 2, ram: 512 }, cohort: "main", reserved: { cpu: 1, ram: 1024 } };
  assert.equal(
    detailWords(entry({ before, after }), NOW),
    "cpu 3 -> 0.5 · ram 4 GiB -> no limit · borrowing limit cpu 1 -> 2 · parent org -> none · gpu kinds a100 2 -> none · storage no limit -> 1 GiB · cohort none -> main · reserved none -> cpu 1, ram 1 GiB",
  );
  assert.equal(detailWords(entry({ before: { cpu: 1 }, after: { cpu: 1 } }), NOW), "");
});

test("where nothing was set it is told what that meant, by whose amounts they are", () => {
  const told = (field: string, before: unknown, after: unknown): string => detailWords(entry({ before: { [field]: before }, after: { [field]: after } }), NOW);
  assert.equal(told("borrowing_limit", null, { cpu: 0 }), "borrowing limit no limit -> cpu 0");
  assert.equal(told("borrowing_limit", { cpu: 0 }, null), "borrowing limit cpu 0 -> no limit");
  assert.equal(told("lending_limit", { cpu: 0 }, { cpu: 0, "gpu:a100": 1 }), "lending limit gpu:a100 no limit -> 1");
  assert.equal(told("reserved", { cpu: 1 }, { ram: 1024 }), "reserved cpu 1 -> none · reserved ram none -> 1 GiB");
  assert.equal(told("cohort", null, "main"), "cohort none -> main");
});

test("a pair that did not change is left out, and what is new is one word", () => {
  const after = { amount: "500", currency: "EUR", stop: false, begins: null, ends: null };
  assert.equal(detailWords(entry({ before: null, after }), NOW), "amount none -> 500 · currency none -> EUR");
  assert.equal(detailWords(entry({ before: after, after: { ...after, stop: true } }), NOW), "stop no -> yes");
  assert.equal(detailWords(entry({ currency: "EUR", new: true }), NOW), "currency EUR · new");
  assert.equal(detailWords(entry({ currency: "EUR", new: false }), NOW), "currency EUR · replaced");
  assert.equal(detailWords(entry({ old: "a", new: "b" }), NOW), "before a · after b");
});

test("amounts, lists, times and repetitions read as such", () => {
  assert.equal(detailWords(entry({ amount: { cpu: 4, ram: 2048 }, start: "2026-01-08T12:00:00Z" }), NOW), `amount cpu 4, ram 2 GiB · start ${clock(NOW, NOW)}`);
  assert.equal(detailWords(entry({ why: "too many", jobs: ["a", "b"], more: 20, last: "2026-01-08T12:00:00Z" }), NOW), `why too many · jobs a, b · more 20 · last ${clock(NOW, NOW)}`);
  assert.equal(detailWords(entry({ role: "admin", was: null, times: 3, last: "2026-01-08T12:00:00Z" }), NOW), `role admin · 3 times, last ${clock(NOW, NOW)}`);
  assert.equal(detailWords(entry({ user_number: 2, default: true }), NOW), "user number 2 · default yes");
});

test("words of the platform's own are told as such, and what people wrote is not", () => {
  speak("zh-CN", { "{field} {value}": ["{field} {value}"], role: ["角色"], member: ["成员"], admin: ["管理员"], was: ["原为"], user: ["用户"], "stopped jobs": ["停止的作业"] });
  try {
    assert.equal(detailWords(entry({ role: "member", was: "admin", user: "admin", stopped_jobs: 2 }), NOW), "角色 成员 · 原为 管理员 · 用户 admin · 停止的作业 2");
  } finally {
    speak("en", {});
  }
});

test("how long jobs are kept is said in words, or not at all", () => {
  assert.equal(keepingWords({ job_days: null, jobs: null, job_mib: null }), "");
  assert.equal(keepingWords({ job_days: 1, jobs: null, job_mib: null }), "Jobs that have ended are deleted, with their files, after 1 day.");
  assert.equal(
    keepingWords({ job_days: 90, jobs: 10000, job_mib: 1024 }),
    "Jobs that have ended are deleted, with their files, after 90 days. You can keep 10,000 ended jobs and 1 GiB of their records; beyond that the oldest are deleted.",
  );
  assert.equal(keepingWords({ job_days: null, jobs: null, job_mib: 512 }), "You can keep 512 MiB of records of ended jobs; beyond that the oldest are deleted.");
});

test("a file has what the filters of changes let through, all of it", () => {
  assert.equal(exported({ ...NO_FILTERS, actor: "a&b", back: "3600", kind: "resized" }, NOW, "csv"), "/audit:csv?actor=a%26b&since=2026-01-08T11%3A00%3A00.000Z");
  assert.equal(exported({ ...NO_FILTERS, of: "decisions" }, NOW, "lines"), "/audit:lines");
});

test("the line of the chain says its head, when it left the database, and what the last check found", () => {
  const at = "2026-01-08T12:00:00Z";
  const head: AuditHead = { link: 1204, hash: "3f9a".repeat(16), begins: at, written: null, written_link: null, checked: null, sound: null };
  assert.equal(chainWords(head, NOW), "Head of the chain: link 1204, 3f9a3f9a3f9a · not copied outside the database yet · never checked: run mlp-hub audit --verify");
  const time = clock(at, NOW);
  const told = { ...head, written: at, written_link: 1200, checked: at };
  assert.equal(chainWords({ ...told, sound: true }, NOW), `Head of the chain: link 1204, 3f9a3f9a3f9a · link 1200 copied outside the database ${time} · checked ${time}: no break`);
  assert.match(chainWords({ ...told, sound: false }, NOW), /entries were changed or removed; run mlp-hub audit --verify$/);
  assert.equal(chainWords({ ...head, link: null, hash: null, begins: null }, NOW), "The log has no chain yet.");
});
