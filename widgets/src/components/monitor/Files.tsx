/** Files of a job or a model: one directory at a time, each file as a link that downloads it. Links are shown, never followed. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { paths, type Client } from "../../core/service/api";
import { bytes, clock } from "../../core/format/format";
import { t } from "../../core/format/language";
import type { FileEntry } from "../../core/service/wire";
import { Empty, ErrorBox, Heading, Loading, ShowMore, Table, type Column } from "../basics/basics";
import { useLoad, useNow } from "../basics/hooks";

const PAGE = 100;
const MOST = 1000;
const MINUTE = 60_000;

export interface FilesProps {
  client: Client;
  /** The path of what has the files. */
  of: string;
  /** How often they are asked for again, in milliseconds. */
  every?: number;
}

/** Below other things, as in a cell: closed until somebody opens it, and nothing is asked for before. */
export function FoldedFiles(props: FilesProps): JSX.Element {
  const [open, setOpen] = useState(false);
  return (
    <details class="mlp-section mlp-files" onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary>
        <Heading>{t("Files")}</Heading>
      </summary>
      {open ? <Directory {...props} /> : null}
    </details>
  );
}

export function Files(props: FilesProps): JSX.Element {
  return (
    <section class="mlp-section" aria-label={t("Files")}>
      <h2>{t("Files")}</h2>
      <Directory {...props} />
    </section>
  );
}

function Directory({ client, of, every = 0 }: FilesProps): JSX.Element {
  const [way, setWay] = useState<string[]>([]);
  const [limit, setLimit] = useState(PAGE);
  const directory = way.join("/");
  const files = useLoad(`files ${of} ${directory} ${limit}`, () => client.list<FileEntry>(paths.files(of, directory, limit)), every);
  const now = useNow(MINUTE);
  const enter = (names: string[]): void => {
    setWay(names);
    setLimit(PAGE);
  };
  const name = (e: FileEntry): JSX.Element => {
    if (e.kind === "file") {
      return (
        <a class="mlp-link" href={client.base + paths.content(of, [...way, e.name].join("/"))} download={e.name}>
          {e.name}
        </a>
      );
    }
    if (e.kind !== "directory") return <span class="mlp-dim">{`${e.name} ${e.kind === "link" ? t("(a link)") : t("(no file)")}`}</span>;
    return (
      <button type="button" class="mlp-button mlp-small" onClick={() => enter([...way, e.name])}>
        {`${e.name}/`}
      </button>
    );
  };
  const columns: Column<FileEntry>[] = [
    { title: t("Name"), kind: "name", cell: name },
    { title: t("Size"), kind: "num", cell: (e) => (e.kind === "file" ? bytes(e.size) : "") },
    { title: t("Written"), kind: "num", cell: (e) => clock(e.modified, now) },
  ];
  const items = files.data?.items ?? [];
  return (
    <>
      {way.length ? (
        <p class="mlp-crumbs">
          <button type="button" class="mlp-button mlp-small" onClick={() => enter(way.slice(0, -1))}>
            {t("Up")}
          </button>{" "}
          <code>{directory}</code>
        </p>
      ) : null}
      {files.error ? <ErrorBox error={files.error} retry={() => void files.reload()} /> : null}
      {!files.data ? (
        files.error ? null : <Loading what={t("Loading files")} lines={3} />
      ) : items.length === 0 ? (
        <Empty title={t("No files here")} />
      ) : (
        <>
          <Table stack caption={directory ? t("Files in {directory}", { directory }) : t("Files")} columns={columns} rows={items} rowKey={(e) => e.name} />
          {files.data.next && limit < MOST ? <ShowMore more={() => setLimit((shown) => Math.min(MOST, shown + PAGE))} /> : null}
        </>
      )}
    </>
  );
}
