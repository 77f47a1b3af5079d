import assert from "node:assert/strict";
import { test } from "node:test";
import type { Line } from "../../src/core/stream/logs";
import { tracebackLines } from "../../src/core/stream/tracebacks";

const log = (...texts: [rank: number, text: string, err?: boolean][]): Line[] => texts.map(([rank, text, err = true], id) => ({ id, rank, text, err, time: "", partial: false }) as unknown as Line);
const red = (lines: Line[]): number[] => [...tracebackLines(lines)];

test("a warning and a progress bar on stderr are no error", () => {
  assert.deepEqual(red(log([0, "/x.py:3: UserWarning: old"], [0, "  warnings.warn(text)"], [0, " 50%|####     | 5/10"], [0, "2026-01-01 INFO ready"])), []);
});

test("a traceback goes from its first line to the exception, for each rank by itself", () => {
  const lines = log([0, "begins", false], [1, "Traceback (most recent call last):"], [0, "epoch 1"], [1, '  File "a.py", line 1, in f'], [0, "epoch 2"], [1, "    f()"], [1, "KeyError: 'labels'"], [1, "after it"]);
  assert.deepEqual(red(lines), [1, 3, 5, 6]);
});

test("chained exceptions are one error, also behind what mpirun writes before each line", () => {
  const lines = log([0, "[1,0]<stderr>:Traceback (most recent call last):"], [0, "[1,0]<stderr>:  File x"], [0, "[1,0]<stderr>:ValueError: a"], [0, "[1,0]<stderr>:"], [0, "[1,0]<stderr>:During handling of the above exception, another exception occurred:"], [0, "[1,0]<stderr>:Traceback (most recent call last):"], [0, "[1,0]<stderr>:  File y"], [0, "[1,0]<stderr>:KeyError"], [0, "done"]);
  assert.deepEqual(red(lines), [0, 1, 2, 4, 5, 6, 7]);
});

test("a traceback of a notebook's cell ends with its exception", () => {
  const lines = log([0, "ZeroDivisionError                         Traceback (most recent call last)"], [0, "Cell In[2], line 1"], [0, "----> 1 1 / 0"], [0, ""], [0, "ZeroDivisionError: division by zero"], [0, "cell 2 of 3 failed: ZeroDivisionError: division by zero"]);
  assert.deepEqual(red(lines), [0, 1, 2, 3, 4]);
});

test("a text that never ends like a traceback does not colour all that follows", () => {
  const lines = log([0, "Traceback (most recent call last):"], ...Array.from({ length: 1000 }, (): [number, string] => [0, "  on and on"]));
  assert.equal(red(lines).length, 401);
});
