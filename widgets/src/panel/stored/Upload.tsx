/** Files on their way into a dataset: dropped or chosen, with progress, stopped by a button. */
import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { paths, type Client } from "../../core/service/api";
import { dataUrl, directoriesOf, makeDirectory, sendFile, type Upload } from "../../core/stored/data";
import { bytes } from "../../core/format/format";
import { n, t } from "../../core/format/language";

const BEAT_MS = 2000;

export interface Going {
  done: number;
  total: number;
  files: number;
  stop: () => void;
}

/** Send files into a dataset that is there; says how far it is, and at the end whether all of it went. */
export async function upload(
  client: Client, user: string, name: string, directory: string, uploads: Upload[], told: (going: Going) => void,
): Promise<void> {
  const stop = new AbortController();
  const total = uploads.reduce((sum, u) => sum + u.file.size, 0);
  const below = (path: string): string => dataUrl(client, user, name, directory ? `${directory}/${path}` : path);
  const beat = (state: string, progress: number): Promise<unknown> => client.put(`${paths.dataset(user, name)}:heartbeat`, { state, progress });
  let before = 0;
  let beaten = Date.now();
  const show = (done: number, files: number): void => {
    told({ done, total, files, stop: () => stop.abort() });
    if (Date.now() - beaten > BEAT_MS) {
      beaten = Date.now();
      beat("creating", total ? Math.min(99, Math.floor((100 * done) / total)) : 0).catch(() => undefined); // files may go on
    }
  };
  show(0, 0);
  await beat("creating", 0);
  try {
    for (const path of directoriesOf(uploads)) await makeDirectory(client, below(path));
    for (const [i, { path, file }] of uploads.entries()) {
      await sendFile(client, below(path), file, (sent) => show(before + sent, i), stop.signal);
      before += file.size;
      show(before, i + 1);
    }
    await beat("ready", 100);
  } catch (e) {
    await beat("error", total ? Math.min(99, Math.floor((100 * before) / total)) : 0).catch(() => undefined);
    throw e;
  }
}

export function GoingUp({ of, all }: { of: Going; all: number }): JSX.Element {
  const percent = of.total ? Math.floor((100 * of.done) / of.total) : 0;
  return (
    <div class="mlp-upload" role="status">
      <div class="mlp-progress">
        <div class="mlp-progress-track" role="progressbar" aria-label={t("Upload")} aria-valuemin={0} aria-valuemax={100} aria-valuenow={percent}>
          <span class="mlp-progress-fill" style={{ width: `${percent}%` }} />
        </div>
        <span class="mlp-progress-text">{t("{done} of {total}", { done: bytes(of.done), total: bytes(of.total) })}</span>
        <button type="button" class="mlp-button mlp-small" onClick={of.stop}>
          {t("Stop")}
        </button>
      </div>
      <p class="mlp-dim">{n("{done} of 1 file", "{done} of {n} files", all, { done: of.files })}</p>
    </div>
  );
}

/** Where files are dropped or chosen. */
export function Drop({ chosen, children }: { chosen: (uploads: Upload[]) => void; children: string }): JSX.Element {
  const [over, setOver] = useState(false);
  const files = useRef<HTMLInputElement>(null);
  const folder = useRef<HTMLInputElement>(null);
  const take = (input: HTMLInputElement): void => {
    const found = [...(input.files ?? [])].map((file) => ({ path: file.webkitRelativePath || file.name, file }));
    input.value = "";
    if (found.length) chosen(found);
  };
  const drop = async (event: DragEvent): Promise<void> => {
    event.preventDefault();
    setOver(false);
    const entries = [...(event.dataTransfer?.items ?? [])].map((item) => item.webkitGetAsEntry()).filter((e) => e !== null);
    const loose = [...(event.dataTransfer?.files ?? [])].map((file) => ({ path: file.name, file }));
    const found = entries.length ? (await Promise.all(entries.map((e) => walk(e, "")))).flat() : loose;
    if (found.length) chosen(found);
  };
  return (
    <div
      class={over ? "mlp-drop mlp-drop-over" : "mlp-drop"}
      onDragOver={(e) => {
        e.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(e) => void drop(e)}
    >
      <span>{children}</span>
      <span class="mlp-tools">
        <button type="button" class="mlp-button mlp-small" onClick={() => files.current?.click()}>
          {t("Choose files")}
        </button>
        <button type="button" class="mlp-button mlp-small" onClick={() => folder.current?.click()}>
          {t("Choose a directory")}
        </button>
      </span>
      <input ref={files} type="file" multiple hidden aria-label={t("Files to upload")} onChange={(e) => take(e.currentTarget)} />
      <input ref={(e) => { folder.current = e; e?.setAttribute("webkitdirectory", ""); }} type="file" hidden aria-label={t("Directory to upload")} onChange={(e) => take(e.currentTarget)} />
    </div>
  );
}

/** What is below something that was dropped. */
async function walk(entry: FileSystemEntry, above: string): Promise<Upload[]> {
  const path = above ? `${above}/${entry.name}` : entry.name;
  if (entry.isFile) {
    return [{ path, file: await new Promise<File>((done, failed) => (entry as FileSystemFileEntry).file(done, failed)) }];
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  const found: Upload[] = [];
  for (;;) {
    const some = await new Promise<FileSystemEntry[]>((done, failed) => reader.readEntries(done, failed));
    if (!some.length) return found;
    for (const below of some) found.push(...(await walk(below, path)));
  }
}
