/** What becomes of what somebody has here who leaves, one sentence each; nothing of what they do not have. */
import { bytes } from "../format/format";
import { n, t } from "../format/language";
import type { Leaving } from "../service/wire";

export function leaveLines(has: Leaving, jobs: string, files: string): string[] {
  const stop = jobs === "stop";
  const remove = files === "remove";
  const ended = has.ended + has.suspended;
  const lines = [
    has.servers ? n("1 notebook server stops.", "{n} notebook servers stop.", has.servers) : "",
    has.tokens ? n("1 token and all logins end.", "{n} tokens and all logins end.", has.tokens) : t("All logins end."),
    has.apps ? n("1 app is deleted with its keys.", "{n} apps are deleted with their keys.", has.apps) : "",
    !has.running ? "" : stop ? n("1 running job is cancelled.", "{n} running jobs are cancelled.", has.running) : n("1 running job continues until it ends.", "{n} running jobs continue until they end.", has.running),
    !has.waiting ? "" : stop || remove ? n("1 waiting job is cancelled.", "{n} waiting jobs are cancelled.", has.waiting) : n("1 waiting job is suspended.", "{n} waiting jobs are suspended.", has.waiting),
    !ended ? "" : remove ? n("1 job that is not running is removed with its outputs.", "{n} jobs that are not running are removed with their outputs.", ended) : n("1 job that is not running stays with its outputs.", "{n} jobs that are not running stay with their outputs.", ended),
    stored(has, remove),
    remove
      ? has.bytes === null ? t("The home directory is removed when nothing of the user runs any more.") : t("The home directory, {size}, is removed when nothing of the user runs any more.", { size: bytes(has.bytes) })
      : t("The home directory stays until the account is approved again."),
  ];
  return lines.filter(Boolean);
}

function stored(has: Leaving, remove: boolean): string {
  const what = [
    has.datasets ? n("1 dataset", "{n} datasets", has.datasets) : "",
    has.models ? n("1 version of a model", "{n} versions of models", has.models) : "",
  ].filter(Boolean);
  if (!what.length) return "";
  const args = { what: what.join(t(", ")), size: bytes(has.stored) };
  return remove ? t("Removed for good: {what}, {size}.", args) : t("Kept, and counted in the quota as before: {what}, {size}.", args);
}
