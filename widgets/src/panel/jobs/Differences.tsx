/** What differs between runs: metrics, parameters, environment, commit, and the program line by line. */
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { ErrorBox } from "../../components/basics/basics";
import { useLoad } from "../../components/basics/hooks";
import { paths } from "../../core/service/api";
import { dataWords, diff, differing, hunks, packages } from "../../core/charts/compare";
import { metric as show } from "../../core/format/format";
import { t } from "../../core/format/language";
import { named, ofSeveral, type RunOf } from "../../core/jobs/runs";
import type { ListedRun, RunDetail } from "../../core/service/wire";
import { useHub } from "../shared/context";
import { Select } from "../../components/basics/form";

/** Runs whose programs and environments are compared: of more, their parameters and metrics alone. */
const MOST = 12;
/** Pixels of the names' column and of each run's at least: tables below each other have the same columns. */
const [NAME, EACH] = [130, 90];
const text = (value: unknown): string => (value === undefined || value === null ? "" : typeof value === "number" ? show(value) : String(value));

function Rows({ caption, runs, rows, same }: { caption: string; runs: string[]; rows: [string, unknown[]][]; same: string }): JSX.Element {
  return (
    <>
      <h2 class="mlp-h-section">{caption}</h2>
      {rows.length === 0 ? <p class="mlp-dim">{same}</p> : (
        <div class="mlp-table-box mlp-differences" tabIndex={0} role="region" aria-label={caption}>
          <table class="mlp-table" style={{ "--mlp-wide": `${NAME + EACH * runs.length}px` }}>
            <caption class="mlp-hidden">{caption}</caption>
            <thead><tr><th scope="col"><span class="mlp-hidden">{t("What")}</span></th>{runs.map((r) => <th key={r} scope="col" class="mlp-col-num">{r}</th>)}</tr></thead>
            <tbody>{rows.map(([name, values]) => <tr key={name}><th scope="row">{name}</th>{values.map((v, i) => <td key={runs[i]} class="mlp-col-num" data-title={runs[i]}>{text(v)}</td>)}</tr>)}</tbody>
          </table>
        </div>
      )}
    </>
  );
}

export function Differences({ runs, of, labels }: { runs: ListedRun[]; of: RunOf[]; labels: string[] }): JSX.Element {
  const { client } = useHub();
  const some = of.slice(0, MOST);
  const details = useLoad(`details ${some.map((one) => `${one.user}/${one.run}`).join()}`, () => Promise.all(some.map((one) => client.get<RunDetail>(paths.run(one.user, one.run)))));
  const called = (d: RunDetail): string => named(d.run, ofSeveral(runs));
  const metrics = useMemo(() => {
    const found = [...new Set(runs.flatMap((r) => Object.keys(r.metrics)))].filter((m) => !["step", "epoch", "progress"].includes(m));
    return found.flatMap((m): [string, unknown[]][] => [
      [m, runs.map((r) => r.metrics[m]?.last)],
      [t("Best {metric}", { metric: m }), runs.map((r) => r.metrics[m]?.best)],
    ]);
  }, [runs]);
  const found = details.data ?? [];
  const known = found.filter((d) => d.environment !== null);
  const sizes = differing(found.map((d) => ({ runtime: d.runtime, workers: d.workers, cpu: d.cpu, gpu: d.gpu, ram: d.ram, args: d.args.join(" "), script: d.entry })));
  const data = differing(found.map((d) => Object.fromEntries(d.data.map((one) => [`${one.user}/${one.name}`, dataWords(one)]))));
  const inShort = found.map(called);
  return (
    <section aria-label={t("Differences")}>
      <Rows caption={t("Metrics")} runs={labels} rows={metrics} same={t("None of them has reported anything")} />
      <Rows caption={t("Parameters that differ")} runs={labels} rows={differing(runs.map((r) => r.params))} same={t("Their parameters are the same")} />
      {details.error ? <ErrorBox error={details.error} retry={() => void details.reload()} /> : null}
      {found.length ? (
        <>
          {sizes.length ? <Rows caption={t("Size and arguments")} runs={inShort} rows={sizes} same="" /> : null}
          {found.some((d) => d.data.length) ? <Rows caption={t("Datasets that differ")} runs={inShort} rows={data} same={t("The data that they read was the same")} /> : null}
          <Rows
            caption={t("Packages that differ")} runs={known.map(called)} rows={differing(known.map((d) => packages(d.environment)))}
            same={known.length < 2 ? t("The environments of these runs are not known") : t("Their environments are the same")}
          />
          <Rows caption={t("Commits")} runs={inShort} rows={differing(found.map((d) => ({ [t("Commit")]: d.run.commit ? `${d.run.commit.slice(0, 12)}${d.run.dirty ? t(" and changes") : ""}` : "" })))} same={t("They have the same commit, or their commits are not known")} />
          <Programs of={found} called={called} />
        </>
      ) : null}
      {of.length > MOST ? <p class="mlp-dim">{t("Only the programs and environments of the first {n} are compared.", { n: MOST })}</p> : null}
    </section>
  );
}

function Programs({ of, called }: { of: RunDetail[]; called: (d: RunDetail) => string }): JSX.Element {
  const [one, setOne] = useState("0");
  const [other, setOther] = useState("1");
  const [a, b] = [of[Number(one)] ?? of[0], of[Number(other)] ?? of[1]];
  const options = of.map((d, i): [string, string] => [String(i), called(d)]);
  const lines = useMemo(() => hunks(diff(a?.program ?? "", b?.program ?? "")), [a?.program, b?.program]);
  const same = a?.program === b?.program;
  return (
    <>
      <h2 class="mlp-h-section">{t("Programs")}</h2>
      <div class="mlp-page-tools">
        <Select label={t("Base run")} name="one" value={one} options={options} onChange={setOne} />
        <Select label={t("Compared with")} name="other" value={other} options={options} onChange={setOther} />
      </div>
      {a?.program === null || b?.program === null ? <p class="mlp-dim">{t("The text of one of them was not kept")}</p> : same ? <p class="mlp-dim">{t("Their programs are the same")}</p> : (
        <pre class="mlp-diff" tabIndex={0} aria-label={t("Programs, line by line")}>
          {lines.map((line, i) => (line === null ? <span key={i} class="mlp-dim">{"  …\n"}</span> : <span key={i} class={line.kind === "+" ? "mlp-diff-new" : line.kind === "-" ? "mlp-diff-gone" : ""}>{`${line.kind} ${line.text}\n`}</span>))}
        </pre>
      )}
    </>
  );
}
