/** What becomes of what somebody has here who leaves, one sentence each; nothing of what they do not have. */
import { bytes } from "./format";
import { n, t } from "./language";
import type { Leaving } from "./wire";

export function leaveLines(has: Leaving, jobs: string, files: string): string[] {
  const stop = jobs === "stop";
  const remove = files === "remove";
  const ended = has.ended + has.suspended;
  const lines = [
    has.servers ? n("1 notebook server stops.", "{n} notebook servers stop.", has.servers) : "",
    has.tokens ? n("1 token ends, and all logins.", "{n} tokens end, and all logins.", has.tokens) : t("All logins end."),
    has.apps ? n("1 app is deleted with its keys.", "{n} apps are deleted with their keys.", has.apps) : "",
    !has.running ? "" : stop ? n("1 job that runs is cancelled.", "{n} jobs that run are cancelled.", has.running) : n("1 job that runs goes on to its end.", "{n} jobs that run go on to their end.", has.running),
    !has.waiting ? "" : stop || remove ? n("1 job that waits is cancelled.", "{n} jobs that wait are cancelled.", has.waiting) : n("1 job that waits is suspended.", "{n} jobs that wait are suspended.", has.waiting),
    !ended ? "" : remove ? n("1 job that does not run is removed with its outputs.", "{n} jobs that do not run are removed with their outputs.", ended) : n("1 job that does not run stays with its outputs.", "{n} jobs that do not run stay with their outputs.", ended),
    stored(has, remove),
    remove
      ? has.bytes === null ? t("The home directory is removed once nothing runs any more.") : t("The home directory, {size}, is removed once nothing runs any more.", { size: bytes(has.bytes) })
      : t("The home directory stays for when the account is approved again."),
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
