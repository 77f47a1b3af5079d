/** Booked windows of a tenant: what is kept free for it at which time; a platform admin books and removes. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Chip, type Column } from "../../components/basics/basics";
import { useLoad, useNow } from "../../components/basics/hooks";
import { paths } from "../../core/service/api";
import { bookingFieldOf, keptWords, lengthWords, newBooking, notesOf, readBooking, windowWords, type BookingField } from "../../core/teams/booking";
import { clock, withLocalTimes } from "../../core/format/format";
import { amounts } from "../../core/teams/sharing";
import type { Booking } from "../../core/service/wire";
import { choicesOf, zoneName } from "../../core/format/localtime";
import { useHub, useRun } from "../shared/context";
import { Field, Select } from "../../components/basics/form";
import { OwnForm, useForm } from "../shared/OwnForm";
import { OwnList } from "../shared/OwnList";
import { t } from "../../core/format/language";

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
    { title: t("Window"), kind: "name", cell: (w) => w.name },
    { title: t("Kept free"), cell: keptWords },
    {
      title: t("When, in {zone}", { zone: zoneName() }),
      kind: "grow",
      cell: (w) => {
        const { open, text } = windowWords(w, now);
        return (
          <>
            {open ? <Chip kind="good">{t("open since {time}", { time: clock(w.start, now) })}</Chip> : null} {text}
            {w.short ? (
              <div>
                <Chip kind="bad">{t("has not fit since {time}", { time: clock(w.short.since, now) })}</Chip> <span class="mlp-dim">{withLocalTimes(w.short.message, now)}</span>
              </div>
            ) : null}
          </>
        );
      },
    },
    { title: t("Booked by"), kind: "low", cell: (w) => w.made_by },
  ];
  if (session.admin) {
    columns.push({
      title: t("Actions"),
      hideTitle: true,
      kind: "num",
      cell: (w) => (
        <button type="button" class="mlp-button mlp-small mlp-quiet-danger" onClick={() => setRemoving(w)} aria-label={t("Remove window {name}", { name: w.name })}>
          {t("Remove")}
        </button>
      ),
    });
  }
  const stop = (): void => {
    setRemoving(null);
    clear();
  };
  return (
    <OwnList
      title={t("Booked windows")}
      about={t("Kept free on the nodes for this time, regardless of the quotas of others")}
      load={windows}
      words={{ loading: t("Loading booked windows"), none: t("No windows are booked"), caption: t("Booked windows of {tenant}", { tenant }) }}
      add={session.admin ? { label: t("Book a window"), open: () => setMaking(true) } : null}
      form={
        making ? (
          <BookForm
            tenant={tenant}
            names={items.map((w) => w.name)}
            done={() => {
              setMaking(false);
              void windows.reload();
            }}
            cancel={() => setMaking(false)}
          />
        ) : null
      }
      columns={columns}
      busy={busy}
      error={error}
      removing={
        removing && {
          title: t("Remove window {name}?", { name: removing.name }),
          text: t("{amounts} are no longer kept free for {tenant}. Running work continues.", { amounts: amounts(removing.amount), tenant }),
          yes: t("Remove"),
          onYes: () => void run(() => client.delete(paths.booking(tenant, removing.name)), t("Window {name} removed", { name: removing.name })),
          onNo: stop,
        }
      }
    >
      {notesOf(items).map((note) => (
        <p class="mlp-dim" key={note}>
          {note}
        </p>
      ))}
    </OwnList>
  );
}

function BookForm({ tenant, names, done, cancel }: { tenant: string; names: string[]; done: () => void; cancel: () => void }): JSX.Element {
  const { client, say } = useHub();
  const form = useForm({
    begin: () => newBooking(Date.now()),
    read: (texts) => readBooking(texts, names, Date.now()),
    send: async (read) => {
      await client.post<Booking>(paths.bookings(tenant), read.asked);
      say(t("Window {name} booked", { name: read.asked.name }));
      done();
    },
    order: ["name", "start", "startWhich", "end", "endWhich", "cpu", "gpu", "ram"],
    fieldOf: bookingFieldOf,
    say: (msg) => withLocalTimes(msg, Date.now()),
  });
  const field = (name: BookingField, label: string, more: { hint?: string; type?: "datetime-local"; placeholder?: string; autofocus?: boolean } = {}): JSX.Element => (
    <Field {...form.given(name)} label={label} {...more} />
  );
  /** Asks which of two times is meant, in the hour that comes again when clocks are put back. */
  const which = (name: BookingField, label: string, of: BookingField): JSX.Element | null => {
    const choices = choicesOf(form.given(of).value);
    const { value, onInput } = form.given(name);
    return choices.length ? <Select label={label} name={name} value={value} options={choices} onChange={onInput} /> : null;
  };
  const of = (name: BookingField): string => form.given(name).value;
  const length = lengthWords({ ...newBooking(0), start: of("start"), startWhich: of("startWhich"), end: of("end"), endWhich: of("endWhich") });
  return (
    <OwnForm form={form} label={t("Book a window for {tenant}", { tenant })} yes={t("Book")} doing={t("Booking")} cancel={cancel}>
      <div class="mlp-form-grid">
        {field("name", t("Window name"), { placeholder: "demo", autofocus: true })}
        {field("start", t("From"), { type: "datetime-local", hint: t("In {zone}", { zone: zoneName() }) })}
        {which("startWhich", t("Which one"), "start")}
        {field("end", t("Until"), { type: "datetime-local", hint: length ? t("{length} long", { length }) : "" })}
        {which("endWhich", t("Which one"), "end")}
      </div>
      <div class="mlp-form-grid">
        {field("cpu", t("Keep CPU free"), { placeholder: t("none"), hint: t("Cores") })}
        {field("gpu", t("Keep GPU free"), { placeholder: t("none"), hint: t("Devices") })}
        {field("ram", t("Keep memory free"), { placeholder: t("none"), hint: t("Such as 4 GiB") })}
      </div>
    </OwnForm>
  );
}
