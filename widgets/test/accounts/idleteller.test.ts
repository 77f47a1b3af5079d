import assert from "node:assert/strict";
import { test } from "node:test";
import { IdleTeller } from "../../src/core/accounts/idleteller";
import type { Client } from "../../src/core/service/api";
import type { ServerCountdown } from "../../src/core/service/wire";

const counted = (left_s: number | null, server = ""): ServerCountdown => ({ server, tenant: "red", idle_s: 7200, left_s, kept_s: 0 });

function lab(found: () => ServerCountdown[]) {
  const shown: string[] = [];
  const waits: number[] = [];
  const list = () => Promise.resolve({ items: found(), next: null, total: null });
  const clock = { hidden: () => false, later: (_: () => void, ms: number) => (waits.push(ms), () => undefined) };
  const teller = new IdleTeller({ list } as unknown as Client, clock, () => "ann", (text) => {
    shown.push(text);
    return () => void shown.splice(shown.indexOf(text), 1);
  });
  return { shown, waits, teller };
}

test("a countdown is told once and taken back when the server is used or kept; the next one is told again", async () => {
  let all = [counted(600), counted(null, "big")];
  const { shown, waits, teller } = lab(() => all);
  await teller.hurry();
  all = [counted(540), counted(null, "big")];
  await teller.hurry();
  assert.deepEqual(shown, ["Your notebook server has not been used for 2 h. It will be stopped in 10 min."]);
  all = [counted(null), counted(300, "big")];
  await teller.hurry();
  assert.deepEqual(shown, ["Your notebook server big has not been used for 2 h. It will be stopped in 5 min."]);
  all = [counted(300), counted(240, "big")];
  await teller.hurry();
  assert.equal(shown.length, 2);
  assert.deepEqual(new Set(waits), new Set([60_000]));
});

test("where no policy counts a server, a page asks seldom", async () => {
  const { shown, waits, teller } = lab(() => []);
  await teller.hurry();
  assert.deepEqual([shown, waits], [[], [600_000]]);
});
