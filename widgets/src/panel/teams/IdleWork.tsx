/** Notebook servers and jobs with GPUs of a team that nobody used for long: who holds what, since when, and what comes next. */
import type { JSX } from "preact";
import { ErrorBox, Table, type Column } from "../../components/basics/basics";
import { useLoad } from "../../components/basics/hooks";
import { duration } from "../../core/format/format";
import { t } from "../../core/format/language";
import { heldWords, nextWords } from "../../core/jobs/idle";
import { paths } from "../../core/service/api";
import type { IdleHolding } from "../../core/service/wire";
import { href, Link } from "../shared/address";
import { useHub } from "../shared/context";

const EVERY = 30_000;

function What({ of }: { of: IdleHolding }): JSX.Element {
  if (of.kind === "job") {
    const reference = of.run > 1 ? `${of.name}@${of.run}` : of.name;
    return <Link to={href("jobs", of.user, reference)}>{reference}</Link>;
  }
  return <span>{of.name ? t("notebook server {name}", { name: of.name }) : t("notebook server")}</span>;
}

const columns = (): Column<IdleHolding>[] => [
  { title: t("What"), cell: (of) => <What of={of} />, kind: "name" },
  { title: t("User"), cell: (of) => of.user },
  { title: t("Not used for"), cell: (of) => duration(of.idle_s) },
  { title: t("Holds"), cell: (of) => heldWords(of) },
  { title: t("Next"), cell: (of) => nextWords(of) },
];

export function IdleWork({ tenant }: { tenant: string }): JSX.Element {
  const { client } = useHub();
  const found = useLoad(`idle work ${tenant}`, () => client.list<IdleHolding>(paths.idleWork(tenant)), EVERY);
  const rows = found.data?.items ?? [];
  return (
    <section class="mlp-card" aria-label={t("Idle servers and GPUs")}>
      <div class="mlp-card-head">
        <h2>{t("Idle servers and GPUs")}</h2>
      </div>
      {found.error ? <ErrorBox error={found.error} retry={() => void found.reload()} /> : null}
      {rows.length ? (
        <Table stack caption={t("Servers and jobs that nobody used for an hour")} columns={columns()} rows={rows} rowKey={(of) => `${of.kind} ${of.user} ${of.name} ${of.run}`} />
      ) : found.data ? (
        <p class="mlp-dim">{t("Nobody leaves a server or GPUs unused for an hour.")}</p>
      ) : null}
    </section>
  );
}
