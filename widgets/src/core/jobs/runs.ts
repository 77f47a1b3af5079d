/** Which run of its name a job is, and how addresses and commands mean it. */
import { t } from "../format/language";
import { isFinal } from "./phase";
import type { Job } from "../service/wire";

/** A notebook may hold a picture from before names had runs. */
type Named = Pick<Job, "name"> & Partial<Pick<Job, "run" | "phase">>;

/** What means this run and no other, in addresses: `digits@2`. */
export const reference = (job: Named): string => (job.run ? `${job.name}@${job.run}` : job.name);

/** One run of somebody, as addresses of comparisons name it: `digits@2` of one's own, `bob:digits@2` of others. */
export interface RunOf {
  user: string;
  run: string;
}

export const runsIn = (named: string, user: string): RunOf[] =>
  [...new Set(named.split(",").filter(Boolean))].map((one) => {
    const at = Math.max(one.lastIndexOf(":"), one.lastIndexOf("/"));
    return at > 0 ? { user: one.slice(0, at), run: one.slice(at + 1) } : { user, run: one.slice(at + 1) };
  });

/** How a run among others is called: with its user where they are of several. */
export const named = (run: Pick<Job, "name" | "run" | "user">, several: boolean): string => (several ? `${run.user}/${reference(run)}` : reference(run));

export const ofSeveral = (runs: Pick<Job, "user">[]): boolean => new Set(runs.map((run) => run.user)).size > 1;

/** "digits", of a later run "digits run 2". */
export const title = (job: Named): string => (job.run && job.run > 1 ? t("{name} run {run}", { name: job.name, run: job.run }) : job.name);

/** As commands name it: by the name alone they mean the latest run. The terminal's are the same (`mlp.rendering.words`). */
export const commandName = (job: Named): string =>
  job.run === 1 && !isFinal(job.phase ?? "") ? job.name : reference(job);

/** A run that the service names in a sentence, where the first one has its name alone. */
export const pinned = (named: string): string => (named.includes("@") ? named : `${named}@1`);

/** How people know a replica of an app. */
export const replicaName = (app: string, replica: number | null | undefined): string =>
  replica === null || replica === undefined ? t("app {name}", { name: app }) : t("app {name}, replica {n}", { name: app, n: replica });
