/** What a team's admin does besides members and queue: more quota, who asks to join, what was done in the team. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Chip, Empty, ErrorBox, Loading, Table, type Column } from "../../components/basics/basics";
import { countChanged, useLoad, useNow } from "../../components/basics/hooks";
import { paths } from "../../core/service/api";
import { ago, clock, ms } from "../../core/format/format";
import { AMOUNTS, amountWords, askable, askFieldOf, capLabel, CAPS, capWords, has, label, NOTHING_TYPED, readAsk, readCap, stateWords, tones, type AskField, type CapField } from "../../core/teams/team";
import type { AuditEntry, JoinRequest, Member, MemberCap, QuotaRequest, Tenant } from "../../core/service/wire";
import { Details } from "./Audit";
import { useHub, useRun } from "../shared/context";
import { Field, Select } from "../../components/basics/form";
import { leavesDefaultToo } from "./Members";
import { OwnForm, useForm } from "../shared/OwnForm";
import { n, t } from "../../core/format/language";

const EVERY = 15_000;

/** What the team asked the platform's admins for, and what they said. */
export function MoreQuota({ tenant }: { tenant: Tenant }): JSX.Element | null {
  const { client } = useHub();
  const now = useNow(30_000);
  const name = tenant.name;
  const found = useLoad(`requests ${name}`, () => client.list<QuotaRequest>(paths.quotaRequests(name)), EVERY);
  const [asking, setAsking] = useState(false);
  const { run, busy, error } = useRun(found.reload);
  const items = found.data?.items ?? [];
  const waits = items.some((one) => one.state === "open");
  const columns: Column<QuotaRequest>[] = [
    { title: t("Asked for"), kind: "name", cell: amountWords },
    { title: t("State"), kind: "tight", cell: (r) => <Chip kind={tones[r.state]}>{stateWords(r)}</Chip> },
    { title: t("Purpose"), kind: "grow", cell: (r) => <span class="mlp-wrap">{r.reason}{r.word ? <span class="mlp-dim mlp-under">{t("{who}: {word}", { who: r.decided_by ?? "", word: r.word })}</span> : null}</span> },
    { title: t("When"), kind: "num", cell: (r) => ago(r.asked_at, now) },
    {
      title: t("Actions"), hideTitle: true, kind: "num",
      cell: (r) => r.state === "open" ? <button type="button" class="mlp-button mlp-small" disabled={busy} onClick={() => void run(() => client.delete(paths.quotaRequest(name, r.id)), t("The request was taken back"))}>{t("Take back")}</button> : null,
    },
  ];
  if (!askable(tenant).length && !items.length) return null; // it has no limits
  return (
    <section class="mlp-card" aria-label={t("More quota")}>
      <div class="mlp-card-head">
        <h2>{t("More quota")}</h2>
        <span class="mlp-dim">{t("The platform's admins decide.")}</span>
        {waits || asking || !askable(tenant).length ? null : <button type="button" class="mlp-button mlp-small mlp-head-end" onClick={() => setAsking(true)}>{t("Ask for more")}</button>}
      </div>
      {found.error ? <ErrorBox error={found.error} retry={() => void found.reload()} /> : null}
      {error ? <ErrorBox error={error} /> : null}
      {asking ? <AskForm tenant={tenant} cancel={() => setAsking(false)} done={() => {
        setAsking(false);
        void found.reload();
      }} /> : null}
      {items.length ? <Table stack caption={t("Requests of {tenant}", { tenant: name })} columns={columns} rows={items} rowKey={(r) => r.id} /> : found.data && !asking ? <p class="mlp-dim">{t("No requests yet.")}</p> : null}
    </section>
  );
}

function AskForm({ tenant, done, cancel }: { tenant: Tenant; done: () => void; cancel: () => void }): JSX.Element {
  const { client, say } = useHub();
  const form = useForm<AskField, ReturnType<typeof readAsk>>({
    begin: () => NOTHING_TYPED,
    read: readAsk,
    send: async (read) => {
      await client.post<QuotaRequest>(paths.quotaRequests(tenant.name), read.asked);
      say(t("The platform's admins were asked"));
      done();
    },
    order: [...AMOUNTS, "reason"],
    fieldOf: askFieldOf,
  });
  return (
    <OwnForm form={form} label={t("Ask for more quota of {tenant}", { tenant: tenant.name })} yes={t("Ask")} doing={t("Asking")} cancel={cancel}>
      <p class="mlp-dim">{t("Enter the total amounts that the team should have. An empty field does not change.")}</p>
      <div class="mlp-form-grid">
        {askable(tenant).map((of, i) => <Field key={of} {...form.given(of)} label={label(of)} autofocus={i === 0} placeholder={has(tenant, of)} hint={t("now {amount}", { amount: has(tenant, of) })} />)}
      </div>
      <Field {...form.given("reason")} label={t("Purpose")} hint={t("At most 500 characters")} />
    </OwnForm>
  );
}

/** How much one member may hold at once. */
export function Caps({ tenant }: { tenant: string }): JSX.Element {
  const { client } = useHub();
  const found = useLoad(`caps ${tenant}`, () => client.list<MemberCap>(paths.caps(tenant)), EVERY);
  const [editing, setEditing] = useState<MemberCap | null>(null);
  const items = found.data?.items ?? [];
  const who = (cap: MemberCap): string => cap.user ?? t("Each other member");
  const columns: Column<MemberCap>[] = [
    { title: t("Member"), kind: "name", cell: who },
    { title: t("May hold at once"), kind: "grow", cell: (cap) => capWords(cap) },
    {
      title: t("Actions"), hideTitle: true, kind: "num",
      cell: (cap) => <button type="button" class="mlp-button mlp-small" aria-label={t("Change the cap of {user}", { user: who(cap) })} onClick={() => setEditing(cap)}>{t("Change …")}</button>,
    },
  ];
  return (
    <section class="mlp-card" aria-label={t("Caps of members")}>
      <div class="mlp-card-head">
        <h2>{t("Caps of members")}</h2>
        <span class="mlp-dim">{t("The most that one member can hold at once with all jobs. Jobs beyond it wait.")}</span>
        {editing ? null : <button type="button" class="mlp-button mlp-small mlp-head-end" onClick={() => setEditing({ user: null, cpu: null, gpu: null, jobs: null })}>{t("Set a cap")}</button>}
      </div>
      {found.error ? <ErrorBox error={found.error} retry={() => void found.reload()} /> : null}
      {editing ? <CapForm key={editing.user ?? ""} tenant={tenant} of={editing} known={items} close={() => setEditing(null)} done={() => {
        setEditing(null);
        void found.reload();
      }} /> : null}
      {items.length ? <Table stack caption={t("Caps of members of {tenant}", { tenant })} columns={columns} rows={items} rowKey={(cap) => cap.user ?? ""} /> : found.data && !editing ? <p class="mlp-dim">{t("Each member can hold as much as the team.")}</p> : null}
    </section>
  );
}

function CapForm({ tenant, of, known, done, close }: { tenant: string; of: MemberCap; known: MemberCap[]; done: () => void; close: () => void }): JSX.Element {
  const { client, say } = useHub();
  const members = useLoad(`members ${tenant}`, () => client.all<Member>(paths.members(tenant)));
  const [user, setUser] = useState(of.user ?? "");
  const shown = (value: number | null): string => (value === null ? "" : String(value));
  const start = (cap: MemberCap | undefined): Record<CapField, string> => ({ cpu: shown(cap?.cpu ?? null), gpu: shown(cap?.gpu ?? null), jobs: shown(cap?.jobs ?? null) });
  const form = useForm<CapField, ReturnType<typeof readCap>>({
    begin: () => start(known.find((one) => (one.user ?? "") === (of.user ?? "")) ?? of),
    read: readCap,
    send: async (read) => {
      await client.put<MemberCap[]>(paths.caps(tenant), { ...read.asked, user: user || null });
      say(t("The cap is set"));
      done();
    },
    order: CAPS,
    fieldOf: (msg) => CAPS.find((one) => msg.includes(one)) ?? null,
  });
  const names = (members.data?.items ?? []).map((m): [string, string] => [m.user, m.user]);
  return (
    <OwnForm form={form} label={t("Cap of a member of {tenant}", { tenant })} yes={t("Set")} doing={t("Setting")} cancel={close}>
      <Select label={t("Cap of")} name="whose" value={user} onChange={setUser} options={[["", t("Each other member")], ...names]} />
      <div class="mlp-form-grid">
        {CAPS.map((one) => <Field key={one} {...form.given(one)} label={capLabel(one)} placeholder={t("no limit")} />)}
      </div>
      <p class="mlp-dim">{t("An empty field sets no limit; if all fields are empty, the cap is removed. Running work continues. Notebook servers count with their cores and GPUs.")}</p>
    </OwnForm>
  );
}

/** Who asks for a place in the team. */
export function Joins({ tenant, open, taken }: { tenant: string; open: boolean; taken: () => void }): JSX.Element | null {
  const { client } = useHub();
  const now = useNow(30_000);
  const found = useLoad(`joins ${tenant}`, () => client.list<JoinRequest>(paths.joins(tenant)), EVERY);
  const { run, busy, error } = useRun(async () => {
    countChanged(`joins ${tenant}`);
    await found.reload();
  });
  const items = found.data?.items ?? [];
  if (!open && !items.length && !found.error) return null;
  const columns: Column<JoinRequest>[] = [
    { title: t("User"), kind: "name", cell: (one) => one.user },
    { title: t("Message"), kind: "grow", cell: (one) => <span class="mlp-wrap">{one.note}</span> },
    { title: t("When"), kind: "num", cell: (one) => ago(one.asked_at, now) },
    {
      title: t("Actions"), hideTitle: true, kind: "num",
      cell: (one) => (
        <span class="mlp-row-actions">
          <button type="button" class="mlp-button mlp-small mlp-primary" disabled={busy} aria-label={t("Accept {user}", { user: one.user })} onClick={() => void run(() => client.put(paths.join(tenant, one.user, "approve")).then(taken), t("{user} is a member of {tenant} now", { user: one.user, tenant }))}>{t("Accept")}</button>
          <button type="button" class="mlp-button mlp-small mlp-quiet-danger" disabled={busy} aria-label={t("Decline {user}", { user: one.user })} onClick={() => void run(() => client.put(paths.join(tenant, one.user, "decline")), t("{user} was declined", { user: one.user }))}>{t("Decline")}</button>
        </span>
      ),
    },
  ];
  return (
    <section class="mlp-card" aria-label={t("Requests to join")}>
      <div class="mlp-card-head">
        <h2>{t("Requests to join")}</h2>
        {items.length ? <span class="mlp-dim">{items.length}</span> : null}
      </div>
      {found.error ? <ErrorBox error={found.error} retry={() => void found.reload()} /> : null}
      {error ? <ErrorBox error={error} /> : null}
      {items.length ? <p class="mlp-dim">{leavesDefaultToo(tenant)}</p> : null}
      {items.length ? <Table stack caption={t("Requests to join {tenant}", { tenant })} columns={columns} rows={items} rowKey={(one) => one.user} /> : found.data ? <p class="mlp-dim">{t("No open requests now.")}</p> : null}
    </section>
  );
}

const PAGE = 20;

/** Who changed what in the team, the newest first. */
export function TeamAudit({ tenant }: { tenant: string }): JSX.Element {
  const { client } = useHub();
  const now = useNow(30_000);
  const [limit, setLimit] = useState(PAGE);
  const found = useLoad(`audit ${tenant} ${limit}`, () => client.list<AuditEntry>(paths.tenantAudit(tenant, limit, null)), EVERY);
  const items = found.data?.items ?? [];
  const columns: Column<AuditEntry>[] = [
    { title: t("When"), kind: "tight", cell: (e) => <time dateTime={e.time} title={e.time}>{clock(ms(e.time), now, true)}</time> },
    { title: t("Who"), kind: "name", cell: (e) => e.actor },
    { title: t("What"), kind: "tight", cell: (e) => <code>{e.action}</code> },
    { title: t("To"), cell: (e) => <span class="mlp-wrap">{e.object}</span> },
    { title: t("Details"), kind: "grow", cell: (e) => <Details entry={e} now={now} /> },
  ];
  return (
    <section class="mlp-card" aria-label={t("Actions in the team")}>
      <div class="mlp-card-head">
        <h2>{t("Actions in the team")}</h2>
        {items.length ? <span class="mlp-dim">{n("1 change", "{n} changes", items.length)}</span> : null}
        {items.length ? (
          <span class="mlp-actions">
            <a class="mlp-button mlp-small" href={client.base + paths.tenantAuditFile(tenant, "csv")} download={`audit-${tenant}.csv`}>{t("CSV")}</a>
            <a class="mlp-button mlp-small" href={client.base + paths.tenantAuditFile(tenant, "lines")} download={`audit-${tenant}.jsonl`}>{t("JSON lines")}</a>
          </span>
        ) : null}
      </div>
      {found.error ? <ErrorBox error={found.error} retry={() => void found.reload()} /> : null}
      {!found.data && !found.error ? <Loading what={t("Loading the audit log")} lines={3} /> : null}
      {found.data && !items.length ? <Empty title={t("No changes yet")} /> : null}
      {items.length ? <Table stack caption={t("Changes, the newest first")} columns={columns} rows={items} rowKey={(e) => String(e.id)} /> : null}
      {found.data?.next && limit < 1000 ? (
        <p class="mlp-more">
          <button type="button" class="mlp-button" onClick={() => setLimit(Math.min(1000, limit * 3))}>{t("Show more")}</button>
        </p>
      ) : null}
    </section>
  );
}
