/** How much runs and waits, each kind by its name: the queue, the overview and the page of a team count the same. Pure. */
import { n, t } from "../format/language";
import { isWaiting } from "./phase";
import type { QueueEntry } from "../service/wire";

type Counted = Pick<QueueEntry, "kind" | "phase">;

/** Counts in words; `total` is the number of all rows, of which those that run are always among `rows`. */
export function countWords(rows: readonly Counted[], total: number): string[] {
  const running = rows.filter((row) => !isWaiting(row.phase));
  const of = (some: readonly Counted[], kind: string): number => some.filter((row) => row.kind === kind).length;
  const suspended = rows.filter((row) => row.phase === "suspended");
  const waiting = rows.filter((row) => isWaiting(row.phase) && row.phase !== "suspended");
  const replicas = of(running, "app");
  const words = [n("1 job running", "{n} jobs running", of(running, "job")), ...(replicas ? [n("1 replica of an app running", "{n} replicas of apps running", replicas)] : [])];
  // not all that wait are known one by one
  if (total > rows.length) return [...words, t("{n} waiting or suspended", { n: total - running.length })];
  const [servers, apps] = [of(waiting, "server"), of(waiting, "app")];
  return [
    ...words,
    n("1 job waiting", "{n} jobs waiting", of(waiting, "job")),
    ...(apps ? [n("1 replica of an app waiting", "{n} replicas of apps waiting", apps)] : []),
    ...(servers ? [n("1 notebook server waiting", "{n} notebook servers waiting", servers)] : []),
    ...(suspended.length ? [t("{n} suspended", { n: suspended.length })] : []),
  ];
}
