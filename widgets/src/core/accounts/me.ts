/** What my own page says of my jobs and tokens. */
import { ago } from "../format/format";
import { t } from "../format/language";
import { word } from "../jobs/phase";
import type { Job, TokenInfo } from "../service/wire";

export interface JobLine {
  reference: string;
  title: string;
  state: string;
  progress: number;
  submitted: string;
}

export const jobLines = (jobs: Job[]): JobLine[] =>
  jobs.map((job) => ({
    reference: `${job.name}@${job.run}`,
    title: job.run > 1 ? `${job.name}@${job.run}` : job.name,
    state: word(job.phase, job.reason),
    progress: job.progress,
    submitted: job.submitted_at,
  }));

export function tokenLine(token: TokenInfo, now: number): string {
  const name = token.note || token.id;
  return token.last_used ? t("{name}, used {ago}", { name, ago: ago(token.last_used, now) }) : t("{name}, never used", { name });
}
