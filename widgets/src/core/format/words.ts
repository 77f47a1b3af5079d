/** Words of the contract as people read them; one that is newer than the page as it is. Pure. */
import { t } from "./language";

const lookup = (table: Record<string, () => string>, word: string): string => (Object.hasOwn(table, word) ? table[word]?.() : undefined) ?? word;

const EVENTS: Record<string, () => string> = {
  submitted: () => t("submitted"), queued: () => t("queued"), admitted: () => t("admitted"), starting: () => t("starting"), running: () => t("running"),
  suspending: () => t("suspending"), suspended: () => t("suspended"), resume: () => t("resumed"), resumed: () => t("resumed"), preempted: () => t("preempted"),
  changed: () => t("changed"), requeued: () => t("requeued"), resize: () => t("resize"), resized: () => t("resized"), finishing: () => t("finishing"), finished: () => t("finished"),
  failed: () => t("failed"), cancelling: () => t("cancelling"), cancelled: () => t("cancelled"), deleting: () => t("deleting"),
  started: () => t("started"), waiting: () => t("waiting"), "metrics-full": () => t("metrics full"), "metrics-lost": () => t("metrics lost"), "metrics-names": () => t("too many metrics"), runtime: () => t("runtime changed"),
  created: () => t("pods made"), bound: () => t("nodes found"), pulled: () => t("images ready"), "first-line": () => t("first output"),
  "start-failed": () => t("start failed"), "output-lost": () => t("output lost"), "storage-full": () => t("storage full"),
  "memory-killed": () => t("killed for memory"), "program-changed": () => t("script changed"),
  "attempt-failed": () => t("attempt failed"), ended: () => t("attempt ended"), asked: () => t("asked"),
  "asked-to-end": () => t("asked to end"), remark: () => t("remark"), idle: () => t("GPUs not used"), kept: () => t("kept"),
};
/** What happened to a job: a line of its timeline, or what the scheduler decided. */
export const eventWord = (kind: string): string => lookup(EVENTS, kind);

const ROLES: Record<string, () => string> = { member: () => t("Member"), admin: () => t("Admin") };
export const roleWord = (role: string): string => lookup(ROLES, role);

const FIELDS: Record<string, () => string> = {
  name: () => t("name"), ram: () => t("ram"), rom: () => t("storage"), weight: () => t("weight"), cohort: () => t("cohort"), parent: () => t("parent"), borrowing_limit: () => t("borrowing limit"),
  lending_limit: () => t("lending limit"), reserved: () => t("reserved"), queue_order: () => t("queue order"), isolation: () => t("isolation"), data_root: () => t("own root"),
  network: () => t("network"), leavers: () => t("jobs of members who leave"), datasets: () => t("datasets that jobs may read"), description: () => t("description"), gpu_kinds: () => t("gpu kinds"), role: () => t("role"), amount: () => t("amount"),
  start: () => t("start"), end: () => t("end"), why: () => t("why"), jobs: () => t("jobs"), more: () => t("more"), default: () => t("default"),
  priority: () => t("priority"), time_limit: () => t("time limit"), place: () => t("place"), jobs_at_once: () => t("jobs at once"), joining: () => t("requests to join"),
  amounts: () => t("amounts"), word: () => t("word"), note: () => t("note"),
  size: () => t("size"), endpoint: () => t("endpoint"), secret: () => t("secret"), src: () => t("source"), old: () => t("before"), new: () => t("after"), keys: () => t("keys"),
  key: () => t("key"), share: () => t("share"), evict: () => t("moved away"), group: () => t("group"), stopped_jobs: () => t("stopped jobs"), suspended_jobs: () => t("suspended jobs"),
  removed_jobs: () => t("removed jobs"), files: () => t("files"), level: () => t("level"), text: () => t("text"), model: () => t("model"), generation: () => t("generation"),
  replicas: () => t("replicas"), from: () => t("from"), to: () => t("to"), outcome: () => t("outcome"), bytes: () => t("bytes"), image: () => t("image"), channels: () => t("channels"),
  state: () => t("state"), program: () => t("program"), programs: () => t("programs"), launcher: () => t("launcher"), env: () => t("variables"), waiting: () => t("waiting"),
  default_tenant: () => t("default team"), user_number: () => t("user number"), applied_for: () => t("requested team"), admin: () => t("platform administrator"), tokens: () => t("tokens"),
  token: () => t("token"), scopes: () => t("scopes"), expires: () => t("expires"), failed: () => t("failed"),
  hours: () => t("hours"), at: () => t("time"), after_minutes: () => t("minutes without use"), grace_minutes: () => t("minutes of the countdown"),
  was: () => t("was"), rule: () => t("rule"), until: () => t("until"), user: () => t("user"), tenant: () => t("team"), job: () => t("job"), reason: () => t("reason"), source: () => t("source"),
};
const MEMBER: Record<string, () => string> = { member: () => t("member"), admin: () => t("admin") };
const STAGES: Record<string, () => string> = { none: () => t("none"), staging: () => t("staging"), production: () => t("production"), archived: () => t("archived") };
/** By field: names and what people wrote stay as they are, also where they are one of these words. */
const VALUES: Record<string, Record<string, () => string>> = {
  role: MEMBER,
  was: MEMBER,
  source: { local: () => t("by hand"), group: () => t("group") },
  priority: { high: () => t("high"), normal: () => t("normal"), low: () => t("low") },
  state: { submitted: () => t("submitted"), approved: () => t("approved"), disabled: () => t("disabled") },
  level: { info: () => t("for information"), warning: () => t("warning"), critical: () => t("urgent") },
  network: { none: () => t("none"), outbound: () => t("outbound") },
  joining: { closed: () => t("nobody may ask"), asked: () => t("anybody may ask") },
  leavers: { finish: () => t("continue until they end"), stop: () => t("are cancelled") },
  jobs: { finish: () => t("continue until they end"), stop: () => t("are cancelled") },
  files: { keep: () => t("stay"), remove: () => t("are removed") },
  old: STAGES,
  new: STAGES,
};
/** A value of such a field, where it is a word of the platform's own. */
export const valueWord = (field: string, value: string): string => {
  const words = Object.hasOwn(VALUES, field) ? VALUES[field] : undefined;
  return words ? lookup(words, value) : value;
};

/** A field of what the audit log keeps. */
export const fieldWord = (key: string): string => (Object.hasOwn(FIELDS, key) ? lookup(FIELDS, key) : key.replaceAll("_", " "));
