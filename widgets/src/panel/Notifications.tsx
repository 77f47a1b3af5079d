/** Where I am told of my jobs: events of each channel, quiet hours, a test; and what the browser itself tells. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ErrorBox, Loading } from "../components/basics";
import { useLoad } from "../components/hooks";
import { paths } from "../core/api";
import { t } from "../core/language";
import { asSet, EVENTS, eventWord, toggled, unseen, type NoticeEvent } from "../core/notices";
import type { ChannelTested, Notice, Notifications as Chosen, NotificationsSet } from "../core/wire";
import { useHub } from "./context";
import { Field } from "./form";

const EVERY = 15_000;
const SEEN = "mlp-notices-seen";

export function Notifications(): JSX.Element {
  const { session, client } = useHub();
  const user = session.username;
  const found = useLoad(`notifications ${user}`, () => client.get<Chosen>(paths.notifications(user)));
  const [name, setName] = useState("");
  const [address, setAddress] = useState("");
  const [begin, setBegin] = useState<string | null>(null);
  const [until, setUntil] = useState<string | null>(null);
  const [said, setSaid] = useState("");
  const [wrong, setWrong] = useState<string | null>(null);
  const now = found.data;

  const keep = async (change: Partial<NotificationsSet>): Promise<boolean> => {
    if (!now) return false;
    try {
      await client.put<Chosen>(paths.notifications(user), { ...asSet(now), ...change });
      setWrong(null);
      await found.reload();
      return true;
    } catch (error) {
      setWrong(String((error as Error).message));
      return false;
    }
  };
  const test = async (channel: string): Promise<void> => {
    setSaid(t("Trying {name}", { name: channel }));
    try {
      const how = await client.post<ChannelTested>(`${paths.notifications(user)}:test`, { channel });
      setSaid(how.taken ? t("{name} took it", { name: channel }) : t("{name} did not take it: {why}", { name: channel, why: how.trouble ?? "" }));
    } catch (error) {
      setSaid(String((error as Error).message));
    }
  };
  const add = async (): Promise<void> => {
    if (!now) return;
    const channel = { name, address, events: ["finished", "failed"] as NoticeEvent[] };
    if (await keep({ channels: [...asSet(now).channels.filter((one) => one.name !== name), channel] })) {
      setName("");
      setAddress("");
    }
  };
  const browser = async (event: NoticeEvent, on: boolean): Promise<void> => {
    if (!now) return;
    if (on && "Notification" in window && Notification.permission === "default") await Notification.requestPermission();
    await keep({ browser: toggled(now.browser, event, on) });
  };
  const set = now ? asSet(now) : null;
  return (
    <section class="mlp-card" aria-label={t("Notifications")}>
      <div class="mlp-card-head">
        <h2>{t("Notifications")}</h2>
        <span class="mlp-dim">{t("What you are told of your jobs, and where. Addresses are sealed and not shown again.")}</span>
      </div>
      {found.error ? <ErrorBox error={found.error} retry={() => void found.reload()} /> : null}
      {!now || !set ? (
        found.error ? null : <Loading what={t("Loading notifications")} lines={3} />
      ) : (
        <>
          <Events label={t("In this browser")} chosen={now.browser} change={(event, on) => void browser(event, on)} />
          {now.channels.map((one) => (
            <div key={one.name}>
              <Events
                label={`${one.name} (${one.shown})`}
                chosen={one.events}
                change={(event, on) =>
                  void keep({ channels: set.channels.map((c) => (c.name === one.name ? { ...c, events: toggled(c.events, event, on) } : c)) })
                }
              />
              {one.trouble ? <p class="mlp-field-error">{one.trouble}</p> : null}
              <button type="button" class="mlp-button" onClick={() => void test(one.name)}>
                {t("Test {name}", { name: one.name })}
              </button>{" "}
              <button type="button" class="mlp-button" onClick={() => void keep({ channels: set.channels.filter((c) => c.name !== one.name) })}>
                {t("Remove {name}", { name: one.name })}
              </button>
            </div>
          ))}
          <p role="status">{said}</p>
          {wrong ? <p class="mlp-field-error" role="alert">{wrong}</p> : null}
          <div class="mlp-form-grid">
            <Field label={t("Name of a new channel")} name="channel" value={name} onInput={setName} hint={t("As you call it: team, mail")} />
            <Field
              label={t("Its address")}
              name="address"
              value={address}
              onInput={setAddress}
              hint={now.mail ? "mailto:ann@example.org, https://..." : "https://..."}
            />
          </div>
          <button type="button" class="mlp-button" disabled={!name || !address} onClick={() => void add()}>
            {t("Add")}
          </button>
          <div class="mlp-form-grid mlp-quiet">
            <Field label={t("Quiet from")} name="begin" value={begin ?? now.quiet?.begin ?? ""} onInput={setBegin} placeholder="22:00" />
            <Field label={t("Quiet until")} name="until" value={until ?? now.quiet?.until ?? ""} onInput={setUntil} placeholder="07:00" />
          </div>
          <button
            type="button"
            class="mlp-button"
            onClick={() => {
              const [from, to] = [begin ?? now.quiet?.begin ?? "", until ?? now.quiet?.until ?? ""];
              const timezone = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
              void keep({ quiet: from && to ? { begin: from, until: to } : null, timezone });
            }}
          >
            {t("Keep quiet hours")}
          </button>
        </>
      )}
    </section>
  );
}

function Events({ label, chosen, change }: {
  label: string;
  chosen: NoticeEvent[];
  change: (event: NoticeEvent, on: boolean) => void;
}): JSX.Element {
  return (
    <fieldset class="mlp-fields mlp-choices">
      <legend>{label}</legend>
      {EVENTS.map((event) => (
        <label key={event}>
          <input type="checkbox" checked={chosen.includes(event)} onChange={(e) => change(event, e.currentTarget.checked)} /> {eventWord(event)}
        </label>
      ))}
    </fieldset>
  );
}

/** Shows what is new while a page is open and the browser may; two tabs tell each notice once. */
export function Telling(): null {
  const { session, client } = useHub();
  const user = session.username;
  useEffect(() => {
    const look = async (): Promise<void> => {
      if (!("Notification" in window) || Notification.permission !== "granted") return;
      const key = `${SEEN}-${user}`;
      const seen = localStorage.getItem(key);
      try {
        const found = await client.get<Notice[]>(seen === null ? paths.notices(user) : `${paths.notices(user)}?after=${seen}`);
        const told = seen === null ? [] : unseen(found, Number(localStorage.getItem(key)));
        localStorage.setItem(key, String(Math.max(Number(seen ?? 0), ...found.map((one) => one.id))));
        for (const one of told) new Notification(one.title, { body: one.text, tag: `mlp-${one.id}` });
      } catch {
        // it is looked at again soon
      }
    };
    void look();
    const timer = setInterval(() => void look(), EVERY);
    return () => clearInterval(timer);
  }, [user]);
  return null;
}
