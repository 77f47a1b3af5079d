/** Alerts of the platform or of one team: what they mean, since when, and silences with a reason and an end. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Chip, Empty, ErrorBox, Icon, Loading, Table, type Column } from "../../components/basics/basics";
import { Field, PageHead, Select } from "../../components/basics/form";
import { useLoad, useNow } from "../../components/basics/hooks";
import { clock } from "../../core/format/format";
import { n, t } from "../../core/format/language";
import { paths } from "../../core/service/api";
import type { Alert, AlertBoard, AlertSilence } from "../../core/service/wire";
import { grouped, GROUPS, readSilence, runbook, severityWord, SILENCE_LASTS, silenceFieldOf, titleOf, TONES, valueWords, type Group, type SilenceField } from "../../core/teams/alerts";
import { base, href, Link } from "../shared/address";
import { useHub, useRun } from "../shared/context";
import { OwnForm, useForm } from "../shared/OwnForm";
import { OwnList } from "../shared/OwnList";

const EVERY = 15_000;
const TITLES: Record<Group, () => string> = {
  firing: () => t("Firing"),
  silenced: () => t("Silenced"),
  pending: () => t("Pending"),
  resolved: () => t("Recently over"),
};
const ABOUT: Record<Group, () => string> = {
  firing: () => t("Their conditions have held for the time that their rules say."),
  silenced: () => t("Nobody is told of these until their silence ends."),
  pending: () => t("Their conditions hold, not yet for long enough to tell anybody."),
  resolved: () => t("Their conditions hold no more."),
};
interface Chosen {
  rule: string;
  tenant: string;
}

/** A text with its parts in backticks as code; one with a backtick too many stays as it is. */
function coded(text: string): (string | JSX.Element)[] {
  const parts = text.split("`");
  return parts.length % 2 ? parts.map((part, at) => (at % 2 ? <code key={at}>{part}</code> : part)) : [text];
}

/** `tenant` is left out where it is the whole platform. */
export function AlertsPage({ tenant }: { tenant?: string }): JSX.Element {
  const { client } = useHub();
  const now = useNow(10_000);
  const [making, setMaking] = useState<Chosen | null>(null);
  const load = useLoad(`alerts ${tenant ?? ""}`, () => client.get<AlertBoard>(tenant ? paths.tenantAlerts(tenant) : paths.alerts), EVERY);
  const board = load.data;
  const open = board ? board.alerts.filter((one) => one.state !== "resolved").length : 0;
  const silence = (one: Alert): void => {
    setMaking({ rule: one.rule, tenant: one.tenant });
  };
  return (
    <>
      <PageHead
        title={tenant ? t("Alerts of {tenant}", { tenant }) : t("Alerts")}
        sub={board ? (board.evaluated_at ? t("{firing}, evaluated {time}", { firing: n("1 alert fires", "{n} alerts fire", board.firing), time: clock(board.evaluated_at, now) }) : t("The first evaluation follows soon.")) : undefined}
      >
        {board && !making ? (
          <button type="button" class="mlp-button" onClick={() => setMaking({ rule: "", tenant: "" })}>{t("Silence alerts")}</button>
        ) : null}
      </PageHead>
      {load.error ? <ErrorBox error={load.error} retry={() => void load.reload()} /> : null}
      {!board && !load.error ? <Loading what={t("Loading alerts")} lines={5} /> : null}
      {board && making ? (
        <section class="mlp-card" aria-label={t("Silence alerts")}>
          <div class="mlp-card-head"><h2>{t("Silence alerts")}</h2></div>
          <SilenceForm key={making.rule + making.tenant} {...(tenant ? { team: tenant } : {})} board={board} begin={making} cancel={() => setMaking(null)} done={() => {
            setMaking(null);
            void load.reload();
          }} />
        </section>
      ) : null}
      {board?.delivery && board.delivery.state !== "ok" ? (
        <div class="mlp-note mlp-note-wait" role="status">
          <Icon name="warn" />
          <div class="mlp-note-text">{t("{text}.", { text: board.delivery.text })}</div>
        </div>
      ) : null}
      {board && !open ? <Empty title={t("No alert fires")}><p>{t("The rules are evaluated here, without Prometheus.")}</p></Empty> : null}
      {board ? GROUPS.map((group) => <AlertGroup key={group} group={group} alerts={grouped(board, group)} of={board} now={now} silence={silence} team={Boolean(tenant)} />) : null}
      {board ? <Silences board={board} {...(tenant ? { tenant } : {})} now={now} reload={load.reload} /> : null}
    </>
  );
}

function AlertGroup({ group, alerts, of, now, silence, team }: {
  group: Group;
  alerts: Alert[];
  of: AlertBoard;
  now: number;
  silence: (one: Alert) => void;
  team: boolean;
}): JSX.Element | null {
  if (!alerts.length) return null;
  const silenced = (one: Alert): AlertSilence | undefined => of.silences.find((each) => each.id === one.silence);
  const columns: Column<Alert>[] = [
    {
      title: t("Alert"),
      kind: "name",
      cell: (one) => (
        <>
          <Chip kind={group === "resolved" ? "idle" : TONES[one.severity]}>{severityWord(one.severity)}</Chip> {one.summary}
          {one.inhibited ? <span class="mlp-dim mlp-under">{t("inhibited by a larger alert: nobody is told")}</span> : null}
          {silenced(one) ? <span class="mlp-dim mlp-under">{t("until {until}, {who}: {reason}", { until: clock(silenced(one)?.until ?? "", now), who: silenced(one)?.made_by ?? "", reason: silenced(one)?.reason ?? "" })}</span> : null}
        </>
      ),
    },
    {
      title: t("Meaning"),
      kind: "grow",
      cell: (one) => (
        <span class="mlp-wrap">
          {one.description}
          <span class="mlp-dim mlp-under">{coded(one.meaning)}</span>
          <a class="mlp-link" href={runbook(base, one.rule)}>{t("What to do: {rule}", { rule: one.rule })}</a>
        </span>
      ),
    },
    { title: t("Value and threshold"), kind: "num", cell: valueWords },
    { title: group === "resolved" ? t("Over since") : t("Since"), kind: "num", cell: (one) => clock(one.state_since, now) },
  ];
  if (group === "firing" || group === "pending") {
    columns.push({
      title: t("Actions"),
      hideTitle: true,
      kind: "num",
      cell: (one) => <button type="button" class="mlp-button mlp-small" aria-label={t("Silence: {text}", { text: one.summary })} onClick={() => silence(one)}>{t("Silence")}</button>,
    });
  }
  if (!team) columns.splice(1, 0, { title: t("Team"), kind: "low", cell: (one) => (one.tenant ? <Link to={href("admin", "tenants", one.tenant)}>{one.tenant}</Link> : "") });
  return (
    <section class="mlp-card" aria-label={TITLES[group]()}>
      <div class="mlp-card-head">
        <h2>{group === "firing" ? <><Icon name="bad" /> {TITLES[group]()}</> : TITLES[group]()}</h2>
        <span class="mlp-dim">{ABOUT[group]()}</span>
      </div>
      <Table stack caption={TITLES[group]()} columns={columns} rows={alerts} rowKey={(one) => String(one.id)} />
    </section>
  );
}

type Named = AlertSilence & { name: string };

function Silences({ board, tenant, now, reload }: { board: AlertBoard; tenant?: string; now: number; reload: () => Promise<void> }): JSX.Element | null {
  const { client, session } = useHub();
  const [ending, setEnding] = useState<Named | null>(null);
  const { run, busy, error, clear } = useRun(async () => {
    setEnding(null);
    await reload();
  });
  if (!board.silences.length) return null;
  const items = board.silences.map((one): Named => ({ ...one, name: String(one.id) }));
  const what = (one: AlertSilence): string => [one.rule ? titleOf(board, one.rule) : t("All alerts"), one.tenant ? t("Team {name}", { name: one.tenant }) : ""].filter(Boolean).join(" · ");
  const columns: Column<Named>[] = [
    { title: t("Silence"), kind: "name", cell: (one) => <>{what(one)}{one.of_team ? <span class="mlp-dim mlp-under">{t("for the team's admins only")}</span> : null}</> },
    { title: t("Reason"), kind: "grow", cell: (one) => <span class="mlp-wrap">{one.reason}</span> },
    { title: t("Until"), kind: "num", cell: (one) => clock(one.until, now) },
    { title: t("Made by"), kind: "low", cell: (one) => one.made_by },
    {
      title: t("Actions"), hideTitle: true, kind: "num",
      cell: (one) => (session.admin || one.of_team ? <button type="button" class="mlp-button mlp-small" aria-label={t("End the silence of {what}", { what: what(one) })} onClick={() => setEnding(one)}>{t("End the silence")}</button> : null),
    },
  ];
  return (
    <OwnList
      title={t("Silences")}
      about={t("Each has a reason and an end.")}
      load={{ data: { items }, error: null, reload }}
      words={{ loading: t("Loading alerts"), none: t("Nothing is silenced"), caption: t("Silences") }}
      add={null}
      form={null}
      columns={columns}
      busy={busy}
      error={error}
      removing={
        ending && {
          title: t("End this silence?"),
          text: t("People are notified of its alerts that still fire: {what}", { what: what(ending) }),
          yes: t("End the silence"),
          onYes: () => void run(() => client.delete(tenant ? paths.tenantSilence(tenant, ending.name) : paths.silence(ending.name)), t("The silence is over")),
          onNo: () => {
            setEnding(null);
            clear();
          },
        }
      }
    />
  );
}

function SilenceForm({ team, board, begin, done, cancel }: { team?: string; board: AlertBoard; begin: Chosen; done: () => void; cancel: () => void }): JSX.Element {
  const { client, say } = useHub();
  const [rule, setRule] = useState(begin.rule);
  const [lasts, setLasts] = useState("");
  const [tried, setTried] = useState(false);
  const read = (texts: Record<SilenceField, string>): ReturnType<typeof readSilence> => readSilence(texts, rule, lasts, team ?? null, Date.now());
  const form = useForm<SilenceField, ReturnType<typeof readSilence>>({
    begin: () => ({ reason: "", tenant: begin.tenant }),
    read,
    send: async ({ asked }) => {
      await client.post<AlertSilence>(team ? paths.tenantSilences(team) : paths.silences, asked);
      say(t("The alerts are silenced"));
      done();
    },
    order: ["tenant", "reason"],
    fieldOf: silenceFieldOf,
  });
  const rules: [string, string][] = [["", t("Each alert")], ...board.rules.map((one): [string, string] => [one.name, one.title])];
  const noEnd = tried && !lasts;
  return (
    <OwnForm form={{ ...form, submit: (event) => {
      setTried(true);
      form.submit(event);
    } }} label={t("Silence alerts")} yes={t("Silence")} doing={t("Silencing")} cancel={cancel}>
      <p class="mlp-dim">{team ? t("While the silence lasts, the team's admins are not told of these alerts. The platform's admins still are.") : t("While the silence lasts, nobody is told of these alerts. This page still shows them.")} {t("When it ends, by itself or by hand, people are notified of those that still fire.")}</p>
      <div class="mlp-form-grid">
        <Select label={t("Alert")} name="rule" value={rule} options={rules} onChange={setRule} />
        {team ? null : <Field {...form.given("tenant")} label={t("Team")} hint={t("Left empty: any")} />}
        <Select label={t("Lasts")} name="lasts" value={lasts} options={SILENCE_LASTS()} onChange={setLasts} />
      </div>
      {noEnd ? <p class="mlp-field-error" role="alert">{t("Choose when the silence ends")}</p> : null}
      <Field {...form.given("reason")} label={t("Reason")} hint={t("At most 500 characters")} autofocus />
    </OwnForm>
  );
}
