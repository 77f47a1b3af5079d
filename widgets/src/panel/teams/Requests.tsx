/** What teams ask the platform's admins for: what it would do, and the answer. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Empty, ErrorBox, Icon, Loading } from "../../components/basics/basics";
import { Dialog } from "../../components/basics/Dialog";
import { countChanged, useLoad, useNow } from "../../components/basics/hooks";
import { paths } from "../../core/service/api";
import { ago } from "../../core/format/format";
import { previewLines, toneOf } from "../../core/teams/preview";
import { quotaOf } from "../../core/format/dimensions";
import { amountWords, AMOUNTS, has, label, wouldBe } from "../../core/teams/team";
import type { QuotaRequest, Tenant, TenantPreview } from "../../core/service/wire";
import { href, Link } from "../shared/address";
import { useHub, useRun } from "../shared/context";
import { Field, PageHead } from "../../components/basics/form";
import { n, t } from "../../core/format/language";

const EVERY = 15_000;
type Answer = { of: QuotaRequest; verb: "accept" | "decline" };

export function RequestsPage(): JSX.Element {
  const { client } = useHub();
  const found = useLoad("open requests", () => client.list<QuotaRequest>(paths.openRequests), EVERY);
  const [answer, setAnswer] = useState<Answer | null>(null);
  const items = found.data?.items ?? [];
  return (
    <>
      <PageHead title={t("Requests")} sub={found.data ? n("1 request for more quota", "{n} requests for more quota", items.length) : undefined} />
      {found.error ? <ErrorBox error={found.error} retry={() => void found.reload()} /> : null}
      {!found.data ? (found.error ? null : <Loading what={t("Loading requests")} lines={3} />) : items.length ? items.map((one) => <Asked key={one.id} of={one} answer={(verb) => setAnswer({ of: one, verb })} />) : <Empty title={t("No open requests")} />}
      {answer ? <Answering answer={answer} close={() => setAnswer(null)} done={async () => {
        countChanged("quota requests");
        await found.reload();
      }} /> : null}
    </>
  );
}

function Asked({ of, answer }: { of: QuotaRequest; answer: (verb: Answer["verb"]) => void }): JSX.Element {
  const { client } = useHub();
  const now = useNow(30_000);
  const state = useLoad(`request ${of.id}`, async () => {
    const tenant = await client.get<Tenant>(paths.tenant(of.tenant));
    return { tenant, preview: await client.post<TenantPreview>(paths.preview(of.tenant), wouldBe(tenant, of)) };
  });
  const lines = state.data ? previewLines(state.data.preview, now) : [];
  const tone = toneOf(lines);
  const kind = tone;
  return (
    <section class="mlp-card" aria-label={t("Request of {tenant}", { tenant: of.tenant })}>
      <div class="mlp-card-head">
        <h2><Link to={href("admin", "tenants", of.tenant)}>{of.tenant}</Link></h2>
        <span class="mlp-dim">{t("{user}, {ago}", { user: of.user, ago: ago(of.asked_at, now) })}</span>
      </div>
      <p>{amountWords(of)}{state.data ? <span class="mlp-dim"> {t("(now {amounts})", { amounts: AMOUNTS.filter((one) => quotaOf(of, one) !== null).map((one) => t("{field} {value}", { field: label(one), value: has(state.data?.tenant as Tenant, one) })).join(t(", ")) })}</span> : null}</p>
      <p class="mlp-wrap">{of.reason}</p>
      {state.error ? <ErrorBox error={state.error} retry={() => void state.reload()} /> : null}
      {lines.length ? (
        <div class={`mlp-note mlp-note-${kind}`} aria-label={t("Effect of this quota")} role="group">
          <Icon name={kind === "bad" ? "warn" : kind === "good" ? "good" : "wait"} />
          <div class="mlp-note-text">{lines.map((l) => <p key={l.text}>{l.text}</p>)}</div>
        </div>
      ) : null}
      <div class="mlp-form-buttons">
        <button type="button" class="mlp-button mlp-primary" aria-label={t("Accept the request of {tenant}", { tenant: of.tenant })} onClick={() => answer("accept")}>{t("Accept …")}</button>
        <button type="button" class="mlp-button" aria-label={t("Decline the request of {tenant}", { tenant: of.tenant })} onClick={() => answer("decline")}>{t("Decline …")}</button>
      </div>
    </section>
  );
}

function Answering({ answer, close, done }: { answer: Answer; close: () => void; done: () => Promise<void> }): JSX.Element {
  const { client } = useHub();
  const [word, setWord] = useState("");
  const { run, busy, error } = useRun(async () => {
    close();
    await done();
  });
  const { of, verb } = answer;
  const accepts = verb === "accept";
  const title = accepts ? t("Accept the request of {tenant}?", { tenant: of.tenant }) : t("Decline the request of {tenant}?", { tenant: of.tenant });
  return (
    <Dialog title={title} onClose={close}>
      <form class="mlp-form" noValidate onSubmit={(e) => {
        e.preventDefault();
        void run(() => client.put(paths.answerRequest(of.tenant, of.id, verb), { word: word.trim() }), accepts ? t("{tenant} gets what it requested", { tenant: of.tenant }) : t("The request of {tenant} was declined", { tenant: of.tenant }));
      }}>
        <p>{amountWords(of)}</p>
        <Field name="word" label={t("A message to the people who asked")} value={word} onInput={setWord} autofocus hint={t("At most 500 characters; may be left out")} />
        {error ? <ErrorBox error={error} /> : null}
        <div class="mlp-dialog-buttons">
          <button type="button" class="mlp-button" onClick={close}>{t("Close")}</button>
          <button type="submit" class={accepts ? "mlp-button mlp-primary" : "mlp-button mlp-danger"} disabled={busy}>{accepts ? t("Accept") : t("Decline")}</button>
        </div>
      </form>
    </Dialog>
  );
}
