/** How long jobs are kept that have ended, in words. Pure. */
import { ram, trim } from "../format/format";
import { n, t } from "../format/language";
import type { Keeping } from "../service/wire";

/** Nothing to say, "", where nothing is ever deleted. */
export function keepingWords({ job_days: days, jobs, job_mib: mib }: Keeping): string {
  const after = days === null ? "" : n("Jobs that have ended are deleted, with their files, after 1 day.", "Jobs that have ended are deleted, with their files, after {n} days.", days, { n: trim(days, 1) });
  let beyond = "";
  if (jobs !== null && mib !== null) {
    beyond = n(
      "You can keep 1 ended job and {size} of its records; beyond that the oldest are deleted.",
      "You can keep {n} ended jobs and {size} of their records; beyond that the oldest are deleted.", jobs, { size: ram(mib) },
    );
  } else if (jobs !== null) beyond = n("You can keep 1 ended job; beyond that the oldest are deleted.", "You can keep {n} ended jobs; beyond that the oldest are deleted.", jobs);
  else if (mib !== null) beyond = t("You can keep {size} of records of ended jobs; beyond that the oldest are deleted.", { size: ram(mib) });
  return [after, beyond].filter(Boolean).join(" ");
}
