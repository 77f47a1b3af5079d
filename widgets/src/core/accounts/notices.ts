/** What is told of jobs, requests and alerts: words for events, and what of the choice is sent back. */
import { t } from "../format/language";
import { NOTICE_EVENTS } from "../format/terms";
import type { Notice, NotificationsSet, Notifications } from "../service/wire";

export type NoticeEvent = Notice["event"];

export const noticeWord = (event: NoticeEvent): string =>
  ({ started: t("start"), finished: t("end"), failed: t("failure"), preempted: t("preemption"), late: t("late start"), asked: t("requests to me"), answered: t("answers to my requests"), idle: t("idle notebook servers"), idle_job: t("unused GPUs of my jobs"), idle_team: t("idle servers and GPUs of my teams"), alert: t("alerts"), resolved: t("alerts that are over"), budget: t("budgets of my teams") })[event];

/** The same choice as it is, to be changed and sent back: addresses stay where they are. */
export const asSet = (now: Notifications): Required<NotificationsSet> => ({
  browser: now.browser,
  quiet: now.quiet,
  timezone: now.timezone,
  channels: now.channels.map(({ name, events }) => ({ name, events })),
});

export const toggled = (events: NoticeEvent[], event: NoticeEvent, on: boolean): NoticeEvent[] =>
  NOTICE_EVENTS.filter((one) => (one === event ? on : events.includes(one)));

/** The number after which notices are new, kept so that two tabs tell each once. */
export function unseen(found: Notice[], seen: number): Notice[] {
  return found.filter((one) => one.id > seen && !one.quiet);
}
