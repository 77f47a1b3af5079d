/** What ranks used, as they say once they have ended. Pure; `mlp.rendering.words` says the same in Python, and test/jobs/used.json tests both. */
import { cores, ram } from "../format/format";
import { t } from "../format/language";
import type { Job, MemoryOfEarlierRuns, Rank } from "../service/wire";

type Used = Pick<Rank, "cpu_mean" | "cpu_peak" | "ram_mean" | "ram_peak">;

/** "0.7 on average, 1.9 at most", or "". */
export const cpuUsed = (rank: Used): string =>
  rank.cpu_mean == null || rank.cpu_peak == null ? "" : t("{mean} on average, {most} at most", { mean: cores(rank.cpu_mean), most: cores(rank.cpu_peak) });

/** "900 MiB at most, 600 MiB on average", or "". */
export const ramUsed = (rank: Used): string =>
  rank.ram_mean == null || rank.ram_peak == null ? "" : t("{most} at most, {mean} on average", { most: ram(rank.ram_peak), mean: ram(rank.ram_mean) });

/** What each rank asked for and used: of several the mean of their cores, and the most of any; "" where nothing is known. */
export function usedWords(job: Pick<Job, "cpu" | "ram"> & { ranks: Used[] }): string {
  const known = job.ranks.flatMap((r) => (r.cpu_mean == null || r.ram_peak == null ? [] : [{ cpu: r.cpu_mean, ram: r.ram_peak }]));
  if (!known.length) return "";
  const mean = known.reduce((sum, r) => sum + r.cpu, 0) / known.length;
  const most = Math.max(...known.map((r) => r.ram));
  const told = { ram: ram(job.ram), most: ram(most), cpu: cores(job.cpu), mean: cores(mean) };
  return job.ranks.length > 1
    ? t("Each rank requested {ram}, used at most {most}; requested {cpu} cpu, used {mean} on average", told)
    : t("Requested {ram}, used at most {most}; requested {cpu} cpu, used {mean} on average", told);
}

/** That the use of ranks is known by the job's own report alone; "" where somebody else measured it. */
export const reportedWords = (job: { ranks: Pick<Rank, "reported">[] }): string => (job.ranks.some((r) => r.reported) ? t("Use of CPU and memory by the job's own report.") : "");

/** How much memory earlier runs used, and what `auto` would take; "" where none are known. */
export function memoryWords(of: MemoryOfEarlierRuns | null | undefined): string {
  if (!of?.text) return "";
  const told = { text: of.text.charAt(0).toUpperCase() + of.text.slice(1), fitting: ram(of.fitting), difference: ram(Math.abs(of.fitting - of.asked)) };
  if (of.fitting === of.asked) return t("{text}; --ram auto requests the same amount", told);
  return of.fitting < of.asked
    ? t("{text}; --ram auto requests {fitting}, {difference} less", told)
    : t("{text}; --ram auto requests {fitting}, {difference} more, because it adds a margin", told);
}
