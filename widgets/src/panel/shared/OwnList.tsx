/** A card with what a tenant has of a kind, runtimes or windows: listed, added to by a form, and removed after a question. */
import type { ComponentChildren, JSX } from "preact";
import { Empty, ErrorBox, Loading, Table, type Column } from "../../components/basics/basics";
import { Confirm } from "../../components/basics/Dialog";

export interface Removing {
  title: string;
  text: string;
  yes: string;
  onYes: () => void;
  onNo: () => void;
}

export function OwnList<T extends { name: string }>({ title, about, load, words, add, form, columns, busy, error, removing, children }: {
  title: string;
  about: string;
  load: { data: { items: T[] } | null; error: unknown; reload: () => Promise<void> };
  words: { loading: string; none: string; caption: string };
  /** What adds one: its button is there while no form is. */
  add: { label: string; open: () => void } | null;
  form: JSX.Element | null;
  columns: Column<T>[];
  busy: boolean;
  error: unknown;
  removing: Removing | null;
  children?: ComponentChildren;
}): JSX.Element {
  const items = load.data?.items ?? [];
  return (
    <section class="mlp-card" aria-label={title}>
      <div class="mlp-card-head">
        <h2>{title}</h2>
        <span class="mlp-dim">{about}</span>
        {add && !form ? (
          <button type="button" class="mlp-button mlp-small mlp-head-end" onClick={add.open}>
            {add.label}
          </button>
        ) : null}
      </div>
      {load.error ? <ErrorBox error={load.error} retry={() => void load.reload()} /> : null}
      {!load.data && !load.error ? <Loading what={words.loading} lines={2} /> : null}
      {error && !removing ? <ErrorBox error={error} /> : null}
      {form}
      {load.data && !items.length && !form ? <Empty title={words.none} /> : null}
      {items.length ? <Table caption={words.caption} columns={columns} rows={items} rowKey={(one) => one.name} stack /> : null}
      {children}
      {removing ? (
        <Confirm
          title={removing.title}
          text={<p>{removing.text}</p>}
          yes={removing.yes}
          busy={busy}
          error={error ? <ErrorBox error={error} /> : null}
          onYes={removing.onYes}
          onNo={removing.onNo}
        />
      ) : null}
    </section>
  );
}
