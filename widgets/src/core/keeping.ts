/** How long jobs are kept that have ended, in words. Pure. */
import { ram, trim } from "./format";
import { n, t } from "./language";
import type { Keeping } from "./wire";

/** Nothing to say, "", where nothing is ever deleted. */
export function keepingWords({ job_days: days, jobs, job_mib: mib }: Keeping): string {
  const after = days === null ? "" : n("Jobs that have ended are deleted, with their files, after 1 day.", "Jobs that have ended are deleted, with their files, after {n} days.", days, { n: trim(days, 1) });
  let beyond = "";
  if (jobs !== null && mib !== null) {
    beyond = n(
      "You may keep 1 job that has ended and {size} of its records; beyond that the oldest are deleted.",
      "You may keep {n} jobs that have ended and {size} of their records; beyond that the oldest are deleted.", jobs, { size: ram(mib) },
    );
  } else if (jobs !== null) beyond = n("You may keep 1 job that has ended; beyond that the oldest are deleted.", "You may keep {n} jobs that have ended; beyond that the oldest are deleted.", jobs);
  else if (mib !== null) beyond = t("You may keep {size} of records of jobs that have ended; beyond that the oldest are deleted.", { size: ram(mib) });
  return [after, beyond].filter(Boolean).join(" ");
}
