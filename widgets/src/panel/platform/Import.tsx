/** Many people at once: a file, what would become of each of its lines, then doing it; passwords are shown this once. */
import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { Chip, ErrorBox, Table, type Column } from "../../components/basics/basics";
import { Dialog } from "../../components/basics/Dialog";
import { paths } from "../../core/service/api";
import { n, t } from "../../core/format/language";
import { decoded, lots, passwords, stateWord } from "../../core/platform/people";
import type { ImportedPerson, PeopleImported } from "../../core/service/wire";
import { useHub } from "../shared/context";

const TONES = { new: "run", joins: "run", there: "idle", made: "good", joined: "good", refused: "bad" } as const;

const columns = (): Column<ImportedPerson>[] => [
  { title: t("Line"), kind: "num tight", cell: (one) => one.line },
  { title: t("User"), kind: "name", cell: (one) => one.name },
  { title: t("Team"), cell: (one) => one.team },
  {
    title: t("Result"),
    kind: "grow",
    cell: (one) => (
      <>
        <Chip kind={TONES[one.state]}>{stateWord(one.state)}</Chip> {one.admin ? <Chip kind="wait">{t("Platform administrator")}</Chip> : null} <span class="mlp-dim">{one.note}</span>
        {one.password ? <code>{one.password}</code> : null}
      </>
    ),
  },
];

export function Import({ done, close }: { done: () => Promise<void>; close: () => void }): JSX.Element {
  const { client } = useHub();
  const [people, setPeople] = useState<ImportedPerson[] | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [at, setAt] = useState<number | null>(null);
  const [over, setOver] = useState(false);
  // of each lot, also where it is sent again: what was done then is not done again, and its passwords come
  const keys = useRef(new Map<string, string>());
  const todo = people ? lots(people) : [];
  const doing = at !== null;

  /** Which choice of a file is the newest: the answer of an earlier one may come later. */
  const newest = useRef(0);
  const look = async (file: File | undefined): Promise<void> => {
    newest.current += 1;
    const mine = newest.current;
    setError(null);
    setPeople(null);
    setOver(false);
    if (!file) return;
    try {
      const csv = decoded(await file.arrayBuffer());
      const { people: found } = await client.post<PeopleImported>(paths.importPeople, { csv, dry_run: true });
      if (mine === newest.current) setPeople(found);
    } catch (e) {
      if (mine === newest.current) setError(e);
    }
  };
  // lot by lot: what was done is shown with its passwords though a later one fails
  const make = async (): Promise<void> => {
    let now = people ?? [];
    setError(null);
    try {
      for (const [i, csv] of todo.entries()) {
        setAt(i);
        const key = keys.current.get(csv) ?? crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`;
        keys.current.set(csv, key);
        const answer = await client.post<PeopleImported>(paths.importPeople, { csv, dry_run: false }, { "Idempotency-Key": key });
        const said = new Map(answer.people.map((one) => [one.name, one]));
        now = now.map((one) => {
          const after = one.state === "refused" ? undefined : said.get(one.name);
          return after ? { ...after, line: one.line } : one;
        });
        setPeople(now);
      }
      setOver(true);
    } catch (e) {
      setError(e);
    } finally {
      setAt(null);
      await done();
    }
  };
  const made = people?.some((one) => one.password) ?? false;
  const count = (people ?? []).filter((one) => one.state === "new" || one.state === "joins").length;
  const refused = (people ?? []).filter((one) => one.state === "refused").length;
  return (
    <Dialog title={t("Import people")} onClose={close}>
      <div class="mlp-dialog-text">
        <p>
          {t("A CSV file in UTF-8, one line per person: name, team, platform_admin. Team and platform_admin can be empty. yes in platform_admin makes a platform administrator, not an admin of the team.")} <code>ann,red,no</code>
        </p>
        {over || made ? null : (
          <p>
            <label class="mlp-inline">
              {t("File")} <input type="file" name="people" accept=".csv,.tsv,.txt,text/csv" disabled={doing} data-autofocus onChange={(e) => void look(e.currentTarget.files?.[0])} />
            </label>
          </p>
        )}
        {people ? (
          <p role="status">
            {[over || made ? "" : n("1 row makes a change", "{n} rows make a change", count), refused ? n("1 row refused", "{n} rows refused", refused) : ""].filter(Boolean).join(" · ")}
          </p>
        ) : null}
        {made ? <p>{t("The passwords are shown this once. They should be changed at the next login.")}</p> : null}
        {people ? (
          <div class="mlp-import">
            <Table stack caption={t("Lines of the file")} columns={columns()} rows={people} rowKey={(one) => String(one.line)} />
          </div>
        ) : null}
        {doing ? <progress max={todo.length} value={at ?? 0} aria-label={t("How much is done")} /> : null}
      </div>
      {error ? <ErrorBox error={error} /> : null}
      <div class="mlp-dialog-buttons">
        <button type="button" class="mlp-button" disabled={doing} onClick={close}>
          {over ? t("Close") : t("Cancel")}
        </button>
        {made && people ? (
          <a class="mlp-button" download="passwords.csv" href={`data:text/csv;charset=utf-8,${encodeURIComponent(passwords(people))}`}>
            {t("Save the passwords")}
          </a>
        ) : null}
        {count && !over ? (
          <button type="button" class="mlp-button mlp-primary" disabled={doing} onClick={() => void make()}>
            {n("Import 1 person", "Import {n} people", count)}
          </button>
        ) : null}
      </div>
    </Dialog>
  );
}
