/** Where I am told of my jobs: events of each channel, quiet hours, a test; and what the browser itself tells. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ErrorBox, Loading } from "../../components/basics/basics";
import { Confirm } from "../../components/basics/Dialog";
import { useLoad } from "../../components/basics/hooks";
import { paths, words } from "../../core/service/api";
import { capital } from "../../core/format/reasons";
import { t } from "../../core/format/language";
import { asSet, noticeWord, toggled, unseen, type NoticeEvent } from "../../core/accounts/notices";
import { NOTICE_EVENTS } from "../../core/format/terms";
import type { ChannelSet, ChannelTested, Notice, NoticeChannel, Notifications as Chosen, NotificationsSet } from "../../core/service/wire";
import { useHub } from "../shared/context";
import { Field } from "../../components/basics/form";

const EVERY = 15_000;
const SEEN = "mlp-notices-seen";

export function Notifications(): JSX.Element {
  const { session, client } = useHub();
  const user = session.username;
  const found = useLoad(`notifications ${user}`, () => client.get<Chosen>(paths.notifications(user)));
  const [wrong, setWrong] = useState<unknown>(null);
  const now = found.data;

  const keep = async (change: Partial<NotificationsSet>): Promise<boolean> => {
    if (!now) return false;
    try {
      await client.put<Chosen>(paths.notifications(user), { ...asSet(now), ...change });
      setWrong(null);
      await found.reload();
      return true;
    } catch (error) {
      setWrong(error);
      return false;
    }
  };
  return (
    <section class="mlp-card" aria-label={t("Notifications")}>
      <div class="mlp-card-head">
        <h2>{t("Notifications")}</h2>
        <span class="mlp-dim">{t("The events of your jobs and requests that the hub notifies you of, and where. Addresses are stored encrypted. Only the host of a webhook and the domain of a mail address are shown again.")}</span>
      </div>
      {found.error ? <ErrorBox error={found.error} retry={() => void found.reload()} /> : null}
      {!now ? (
        found.error ? null : <Loading what={t("Loading notifications")} lines={3} />
      ) : (
        <>
          <InBrowser now={now} keep={keep} />
          {now.channels.map((one) => (
            <Channel key={one.name} one={one} channels={asSet(now).channels} keep={keep} />
          ))}
          {wrong ? <ErrorBox error={wrong} /> : null}
          <NewChannel now={now} keep={keep} />
          <Quiet now={now} keep={keep} />
        </>
      )}
    </section>
  );
}

type Keep = (change: Partial<NotificationsSet>) => Promise<boolean>;

function InBrowser({ now, keep }: { now: Chosen; keep: Keep }): JSX.Element {
  const [may, setMay] = useState(() => ("Notification" in window ? Notification.permission : "denied"));
  const change = async (event: NoticeEvent, on: boolean): Promise<void> => {
    if (on && may === "default") setMay(await Notification.requestPermission());
    await keep({ browser: toggled(now.browser, event, on) });
  };
  return (
    <div class="mlp-channel">
      <Events label={t("In your browser")} chosen={now.browser} change={(event, on) => void change(event, on)} />
      {now.browser.length && may !== "granted" ? (
        <p class="mlp-dim">{t("This browser shows nothing until you allow notifications of this site in its settings.")}</p>
      ) : null}
    </div>
  );
}

function Channel({ one, channels, keep }: { one: NoticeChannel; channels: ChannelSet[]; keep: Keep }): JSX.Element {
  const { session, client } = useHub();
  const [said, setSaid] = useState("");
  const [removing, setRemoving] = useState(false);
  const { name } = one;
  const test = async (): Promise<void> => {
    setSaid(t("Trying {name}", { name }));
    try {
      const how = await client.post<ChannelTested>(`${paths.notifications(session.username)}:test`, { channel: name });
      setSaid(how.taken ? t("{name} accepted it", { name }) : t("{name} did not accept it: {why}", { name, why: how.trouble ?? "" }));
    } catch (error) {
      setSaid(words(error));
    }
  };
  const change = (event: NoticeEvent, on: boolean): void =>
    void keep({ channels: channels.map((c) => (c.name === name ? { ...c, events: toggled(one.events, event, on) } : c)) });
  return (
    <div class="mlp-channel">
      <Events label={`${name} (${one.shown})`} chosen={one.events} change={change} />
      {one.trouble ? <p class="mlp-field-error">{capital(one.trouble)}</p> : null}
      <div class="mlp-row">
        <button type="button" class="mlp-button mlp-small" onClick={() => void test()}>
          {t("Test {name}", { name })}
        </button>
        <button type="button" class="mlp-button mlp-small mlp-quiet-danger" onClick={() => setRemoving(true)}>
          {t("Remove {name}", { name })}
        </button>
        <span class="mlp-dim" role="status">{said}</span>
      </div>
      {removing ? (
        <Confirm
          title={t("Remove {name}?", { name })}
          text={<p>{t("Nothing more is sent there, and its address is deleted.")}</p>}
          yes={t("Remove")}
          busy={false}
          error={null}
          onYes={() => void keep({ channels: channels.filter((c) => c.name !== name) }).then(() => setRemoving(false))}
          onNo={() => setRemoving(false)}
        />
      ) : null}
    </div>
  );
}

function NewChannel({ now, keep }: { now: Chosen; keep: Keep }): JSX.Element {
  const [name, setName] = useState("");
  const [address, setAddress] = useState("");
  const add = async (event: Event): Promise<void> => {
    event.preventDefault();
    const channel = { name, address, events: ["finished", "failed"] as NoticeEvent[] };
    if (await keep({ channels: [...asSet(now).channels.filter((one) => one.name !== name), channel] })) {
      setName("");
      setAddress("");
    }
  };
  return (
    <form class="mlp-form mlp-notices-form" aria-label={t("New channel")} onSubmit={(e) => void add(e)}>
      <div class="mlp-form-grid">
        <Field label={t("Name of a new channel")} name="channel" value={name} onInput={setName} hint={t("A name you choose, such as team or mail")} />
        <Field label={t("Its address")} name="address" value={address} onInput={setAddress} hint={now.mail ? "mailto:ann@example.org, https://..." : "https://..."} />
      </div>
      <div class="mlp-form-buttons">
        <button type="submit" class="mlp-button" disabled={!name || !address}>
          {t("Add")}
        </button>
      </div>
    </form>
  );
}

function Quiet({ now, keep }: { now: Chosen; keep: Keep }): JSX.Element {
  const [begin, setBegin] = useState(now.quiet?.begin ?? "");
  const [until, setUntil] = useState(now.quiet?.until ?? "");
  const submit = (event: Event): void => {
    event.preventDefault();
    const timezone = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
    void keep({ quiet: begin && until ? { begin, until } : null, timezone });
  };
  const off = (): void => {
    setBegin("");
    setUntil("");
    void keep({ quiet: null });
  };
  return (
    <form class="mlp-form mlp-notices-form" aria-label={t("Quiet hours")} onSubmit={submit}>
      <div class="mlp-form-grid">
        <Field type="time" label={t("Quiet from")} name="begin" value={begin} onInput={setBegin} hint={t("Nothing is sent during this time. The notifications are sent together afterwards.")} />
        <Field type="time" label={t("Quiet until")} name="until" value={until} onInput={setUntil} hint={now.quiet ? t("Times of {zone}", { zone: now.timezone }) : ""} />
      </div>
      <div class="mlp-form-buttons">
        <button type="submit" class="mlp-button" disabled={!begin || !until}>
          {t("Keep quiet hours")}
        </button>
        {now.quiet ? (
          <button type="button" class="mlp-button" onClick={off}>
            {t("No quiet hours")}
          </button>
        ) : null}
      </div>
    </form>
  );
}

function Events({ label, chosen, change }: {
  label: string;
  chosen: NoticeEvent[];
  change: (event: NoticeEvent, on: boolean) => void;
}): JSX.Element {
  return (
    <fieldset class="mlp-events">
      <legend>{label}</legend>
      {NOTICE_EVENTS.map((event) => (
        <label key={event}>
          <input type="checkbox" checked={chosen.includes(event)} onChange={(e) => change(event, e.currentTarget.checked)} /> {noticeWord(event)}
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
