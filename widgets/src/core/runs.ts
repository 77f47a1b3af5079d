/** Which run of its name a job is, and how addresses and commands mean it. */
import { t } from "./language";
import { isFinal } from "./phase";
import type { Job } from "./wire";

/** A notebook may hold a picture from before names had runs. */
type Named = Pick<Job, "name"> & Partial<Pick<Job, "run" | "phase">>;

/** What means this run and no other, in addresses: `digits@2`. */
export const reference = (job: Named): string => (job.run ? `${job.name}@${job.run}` : job.name);

/** "digits", of a later run "digits run 2". */
export const title = (job: Named): string => (job.run && job.run > 1 ? t("{name} run {run}", { name: job.name, run: job.run }) : job.name);

/** As commands name it: by the name alone they mean the latest run. The terminal's are the same (`mlp.words`). */
export const commandName = (job: Named): string =>
  job.run === 1 && !isFinal(job.phase ?? "") ? job.name : reference(job);

/** A run that the service names in a sentence, where the first one has its name alone. */
export const pinned = (named: string): string => (named.includes("@") ? named : `${named}@1`);

/** How people know a replica of an app. */
export const replicaName = (app: string, replica: number | null | undefined): string =>
  replica === null || replica === undefined ? t("app {name}", { name: app }) : t("app {name}, replica {n}", { name: app, n: replica });
