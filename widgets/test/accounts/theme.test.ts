import assert from "node:assert/strict";
import { test } from "node:test";
import { Themes, type Place } from "../../src/core/accounts/theme";

function place(dark = false): Place & { kept: Map<string, string>; turn: (dark: boolean) => void } {
  const kept = new Map<string, string>();
  const told: (() => void)[] = [];
  const system = { matches: dark, addEventListener: (_: "change", fn: () => void) => void told.push(fn) };
  return {
    kept, system,
    root: { dataset: {} },
    store: () => ({ getItem: (k) => kept.get(k) ?? null, setItem: (k, v) => void kept.set(k, v), removeItem: (k) => void kept.delete(k) }),
    turn: (to) => {
      system.matches = to;
      for (const fn of told) fn();
    },
  };
}

test("without a choice the page follows the system", () => {
  const p = place(true);
  const themes = new Themes(p);
  assert.deepEqual([themes.chosen, p.root.dataset["mlpTheme"]], ["system", "dark"]);
  p.turn(false);
  assert.equal(p.root.dataset["mlpTheme"], "light");
});

test("a choice is kept, holds against the system, and can be taken back", () => {
  const p = place();
  new Themes(p).choose("dark");
  assert.equal(p.root.dataset["mlpTheme"], "dark");
  assert.deepEqual([...p.kept], [["mlp-theme", "dark"]]);
  const again = new Themes(p);
  p.turn(true);
  p.turn(false);
  assert.deepEqual([again.chosen, p.root.dataset["mlpTheme"]], ["dark", "dark"]);
  again.choose("system");
  assert.deepEqual([p.kept.size, p.root.dataset["mlpTheme"]], [0, "light"]);
});

test("nonsense that was kept is no theme, and a browser that keeps nothing still shows the choice", () => {
  const p = place();
  p.kept.set("mlp-theme", "<b>");
  assert.equal(new Themes(p).chosen, "system");
  const none = { ...place(), store: () => { throw new Error("denied"); } };
  const themes = new Themes(none);
  themes.choose("dark");
  assert.deepEqual([themes.chosen, none.root.dataset["mlpTheme"]], ["system", "dark"]);
});
