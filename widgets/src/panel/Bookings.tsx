/** Booked windows of a tenant: what is kept free for it at which time; a platform admin books and removes. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Chip, Empty, ErrorBox, Loading, Table, type Column } from "../components/basics";
import { Confirm } from "../components/Dialog";
import { useLoad, useNow } from "../components/hooks";
import { paths, words } from "../core/api";
import { bookingFieldOf, keptWords, newBooking, notesOf, readBooking, windowWords, type BookingField, type BookingTexts } from "../core/booking";
import { clock, withLocalTimes } from "../core/format";
import { amounts } from "../core/sharing";
import type { Booking } from "../core/wire";
import { useHub, useRun } from "./context";
import { Field } from "./form";

const EVERY = 20_000;

/** `saves` counts changes of the tenant: after each the windows may fit no longer, or again. */
export function Bookings({ tenant, saves }: { tenant: string; saves: number }): JSX.Element {
  const { client, session } = useHub();
  const now = useNow(10_000);
  const windows = useLoad(`bookings ${tenant}`, () => client.list<Booking>(paths.bookings(tenant)), EVERY);
  useEffect(() => {
    if (saves) void windows.reload();
  }, [saves]);
  const [making, setMaking] = useState(false);
  const [removing, setRemoving] = useState<Booking | null>(null);
  const items = windows.data?.items ?? [];
  const { run, busy, error, clear } = useRun(async () => {
    setRemoving(null);
    await windows.reload();
  });
  const columns: Column<Booking>[] = [
    { title: "Window", kind: "name", cell: (w) => w.name },
    { title: "Kept free", cell: keptWords },
    {
      title: "When",
      kind: "grow",
      cell: (w) => {
        const { open, text } = windowWords(w, now);
        return (
          <>
            {open ? <Chip kind="good">{`open since ${clock(w.start, now)}`}</Chip> : null} {text}
            {w.short ? (
              <div>
                <Chip kind="bad">{`does not fit since ${clock(w.short.since, now)}`}</Chip> <span class="mlp-dim">{withLocalTimes(w.short.message, now)}</span>
              </div>
            ) : null}
          </>
        );
      },
    },
    { title: "Booked by", kind: "low", cell: (w) => w.made_by },
  ];
  if (session.admin) {
    columns.push({
      title: "",
      kind: "num",
      cell: (w) => (
        <button type="button" class="mlp-button mlp-small mlp-quiet-danger" onClick={() => setRemoving(w)} aria-label={`Remove window ${w.name}`}>
          Remove
        </button>
      ),
    });
  }
  return (
    <section class="mlp-card" aria-label="Booked windows">
      <div class="mlp-card-head">
        <h2>Booked windows</h2>
        <span class="mlp-dim">Kept free on the nodes for this time, whatever others may use</span>
        {session.admin && !making ? (
          <button type="button" class="mlp-button mlp-small mlp-head-end" onClick={() => setMaking(true)}>
            Book a window
          </button>
        ) : null}
      </div>
      {windows.error ? <ErrorBox error={windows.error} retry={() => void windows.reload()} /> : null}
      {!windows.data && !windows.error ? <Loading what="booked windows" lines={2} /> : null}
      {making ? (
        <BookForm
          tenant={tenant}
          names={items.map((w) => w.name)}
          done={() => {
            setMaking(false);
            void windows.reload();
          }}
          cancel={() => setMaking(false)}
        />
      ) : null}
      {windows.data && !items.length && !making ? <Empty title="No windows are booked" /> : null}
      {items.length ? <Table caption={`Booked windows of ${tenant}`} columns={columns} rows={items} rowKey={(w) => w.name} stack /> : null}
      {notesOf(items).map((note) => (
        <p class="mlp-dim" key={note}>
          {note}
        </p>
      ))}
      {removing ? (
        <Confirm
          title={`Remove window ${removing.name}?`}
          text={<p>{`${amounts(removing.amount)} are no longer kept free for ${tenant}. What runs goes on.`}</p>}
          yes="Remove"
          busy={busy}
          error={error ? <ErrorBox error={error} /> : null}
          onYes={() => void run(() => client.delete(paths.booking(tenant, removing.name)), `Window ${removing.name} removed`)}
          onNo={() => {
            setRemoving(null);
            clear();
          }}
        />
      ) : null}
    </section>
  );
}

function BookForm({ tenant, names, done, cancel }: { tenant: string; names: string[]; done: () => void; cancel: () => void }): JSX.Element {
  const { client, say } = useHub();
  const [texts, setTexts] = useState<BookingTexts>(() => newBooking(Date.now()));
  const [tried, setTried] = useState(false);
  const [refused, setRefused] = useState<{ field: BookingField | null; msg: string } | null>(null);
  const [busy, setBusy] = useState(false);
  const { faults } = readBooking(texts, names, Date.now());
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const read = readBooking(texts, names, Date.now());
    setTried(true);
    setRefused(null);
    const focus = (field: string | null | undefined): void => {
      if (field) (form.elements.namedItem(field) as HTMLElement | null)?.focus();
    };
    if (!read.asked) return focus(["name", "start", "end", "cpu", "gpu", "ram"].find((f) => read.faults[f as BookingField]));
    setBusy(true);
    try {
      await client.post<Booking>(paths.bookings(tenant), read.asked);
      say(`Window ${read.asked.name} booked`);
      done();
    } catch (e) {
      const field = bookingFieldOf(words(e));
      setRefused({ field, msg: withLocalTimes(words(e), Date.now()) });
      setBusy(false);
      focus(field);
    }
  };
  const field = (name: BookingField, label: string, more: { hint?: string; type?: "datetime-local"; placeholder?: string; autofocus?: boolean } = {}): JSX.Element => (
    <Field
      name={name}
      label={label}
      value={texts[name]}
      error={refused?.field === name ? refused.msg : tried ? (faults[name] ?? null) : null}
      onInput={(value) => {
        setTexts((old) => ({ ...old, [name]: value }));
        setRefused(null);
      }}
      {...more}
    />
  );
  return (
    <form class="mlp-form mlp-book" onSubmit={(e) => void submit(e)} aria-label={`Book a window for ${tenant}`} noValidate>
      <div class="mlp-form-grid">
        {field("name", "Window name", { placeholder: "demo", autofocus: true })}
        {field("start", "From", { type: "datetime-local", hint: "In your time zone" })}
        {field("end", "Until", { type: "datetime-local", hint: "30 days at most" })}
      </div>
      <div class="mlp-form-grid">
        {field("cpu", "Keep CPU free", { placeholder: "none", hint: "Cores" })}
        {field("gpu", "Keep GPU free", { placeholder: "none", hint: "Devices" })}
        {field("ram", "Keep memory free", { placeholder: "none", hint: "Such as 4 GiB" })}
      </div>
      {refused && !refused.field ? <ErrorBox error={refused.msg} /> : null}
      <div class="mlp-form-buttons">
        <button type="submit" class="mlp-button mlp-primary" disabled={busy}>
          {busy ? "Booking" : "Book"}
        </button>
        <button type="button" class="mlp-button" onClick={cancel}>
          Cancel
        </button>
      </div>
    </form>
  );
}
