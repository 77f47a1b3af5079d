/** Announcements as those see them who make them: to everybody, or to one team. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Chip, type Column } from "../../components/basics/basics";
import { useLoad, useNow } from "../../components/basics/hooks";
import { announcementFieldOf, LASTS, LEVELS, levelWord, readAnnouncement, type AnnouncementField } from "../../core/accounts/announcements";
import { paths } from "../../core/service/api";
import { clock, ms } from "../../core/format/format";
import { t } from "../../core/format/language";
import { zoneName } from "../../core/format/localtime";
import type { Announcement } from "../../core/service/wire";
import { useHub, useRun } from "../shared/context";
import { Field, Select } from "../../components/basics/form";
import { OwnForm, useForm } from "../shared/OwnForm";
import { OwnList } from "../shared/OwnList";

const EVERY = 20_000;
const TONES = { info: "idle", warning: "wait", critical: "bad" } as const;
type Named = Announcement & { name: string };

/** `tenant` is left out where they are for everybody; those of teams are listed there too. */
export function Announcing({ tenant }: { tenant?: string }): JSX.Element {
  const { client } = useHub();
  const now = useNow(10_000);
  const [making, setMaking] = useState(false);
  const [removing, setRemoving] = useState<Named | null>(null);
  const load = useLoad(
    `announcing ${tenant ?? ""}`,
    async () => ({ items: (await client.list<Announcement>(tenant ? paths.tenantAnnouncements(tenant) : paths.allAnnouncements)).items.map((one): Named => ({ ...one, name: String(one.id) })) }),
    EVERY,
  );
  const { run, busy, error, clear } = useRun(async () => {
    setRemoving(null);
    await load.reload();
  });
  const columns: Column<Named>[] = [
    { title: t("Text"), kind: "name grow", cell: (one) => one.text },
    {
      title: t("Level"),
      kind: "tight",
      cell: (one) => (
        <>
          <Chip kind={TONES[one.level]}>{levelWord(one.level)}</Chip>
          {tenant ? null : <span class="mlp-dim">{` ${one.tenant ? t("to team {name}", { name: one.tenant }) : t("to everybody")}`}</span>}
        </>
      ),
    },
    { title: t("When"), cell: (one) => ((ms(one.begin) ?? 0) > now ? t("from {begin} until {until}", { begin: clock(one.begin, now), until: clock(one.until, now) }) : t("until {until}", { until: clock(one.until, now) })) },
    { title: t("Made by"), kind: "low", cell: (one) => one.made_by },
    {
      title: t("Actions"),
      hideTitle: true,
      kind: "num",
      cell: (one) => (
        <button type="button" class="mlp-button mlp-small mlp-quiet-danger" aria-label={t("Take back: {text}", { text: one.text })} onClick={() => setRemoving(one)}>
          {t("Take back")}
        </button>
      ),
    },
  ];
  const path = (one: Named): string => (tenant ? paths.tenantAnnouncement(tenant, one.name) : paths.announcement(one.name));
  return (
    <OwnList
      title={t("Announcements")}
      about={tenant ? t("Shown to the members of this team, on these pages and in JupyterLab") : t("Shown to everybody, on these pages and in JupyterLab")}
      load={load}
      words={{ loading: t("Loading announcements"), none: t("Nothing is announced"), caption: t("Announcements") }}
      add={{ label: t("Announce"), open: () => setMaking(true) }}
      form={
        making ? (
          <AnnounceForm
            {...(tenant ? { tenant } : {})}
            done={() => {
              setMaking(false);
              void load.reload();
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
          title: t("Take this announcement back?"),
          text: removing.text,
          yes: t("Take back"),
          onYes: () => void run(() => client.delete(path(removing)), t("The announcement is taken back")),
          onNo: () => {
            setRemoving(null);
            clear();
          },
        }
      }
    />
  );
}

function AnnounceForm({ tenant, done, cancel }: { tenant?: string; done: () => void; cancel: () => void }): JSX.Element {
  const { client, say } = useHub();
  const [level, setLevel] = useState("info");
  const [lasts, setLasts] = useState("86400");
  const form = useForm<AnnouncementField, ReturnType<typeof readAnnouncement>>({
    begin: () => ({ text: "", begin: "" }),
    read: (texts) => readAnnouncement(texts, level, lasts, Date.now()),
    send: async (read) => {
      await client.post<Announcement>(tenant ? paths.tenantAnnouncements(tenant) : paths.announcements, read.asked);
      say(t("It is announced"));
      done();
    },
    order: ["text", "begin"],
    fieldOf: announcementFieldOf,
  });
  return (
    <OwnForm form={form} label={t("Announce")} yes={t("Announce")} doing={t("Announcing")} cancel={cancel}>
      <Field {...form.given("text")} label={t("Text")} hint={t("One line of plain text, 500 characters at most")} autofocus />
      <div class="mlp-form-grid">
        <Select label={t("Level")} name="level" value={level} options={LEVELS()} onChange={setLevel} />
        <Select label={t("Lasts")} name="lasts" value={lasts} options={LASTS()} onChange={setLasts} />
        <Field {...form.given("begin")} label={t("From")} type="datetime-local" hint={t("In {zone}; left empty: at once", { zone: zoneName() })} />
      </div>
    </OwnForm>
  );
}
