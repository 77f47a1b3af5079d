/** How long jobs are kept that have ended, in words. Pure. */
import { ram, trim } from "./format";
import type { Keeping } from "./wire";

/** Nothing to say, "", where nothing is ever deleted. */
export function keepingWords({ job_days: days, jobs, job_mib: mib }: Keeping): string {
  const most = [jobs === null ? "" : `${jobs.toLocaleString("en")} jobs that have ended`, mib === null ? "" : `${ram(mib)} of ${jobs === null ? "records of jobs that have ended" : "their records"}`].filter(Boolean);
  const after = days === null ? "" : `Jobs that have ended are deleted, with their files, after ${days === 1 ? "1 day" : `${trim(days, 1)} days`}.`;
  const beyond = most.length ? `You may keep ${most.join(" and ")}; beyond that the oldest are deleted.` : "";
  return [after, beyond].filter(Boolean).join(" ");
}
