/** What an administrator may do to somebody's account; each act says before what it ends. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { ErrorBox } from "../../components/basics/basics";
import { Dialog } from "../../components/basics/Dialog";
import { paths } from "../../core/service/api";
import type { User } from "../../core/service/wire";
import { useHub } from "../shared/context";
import { Leave } from "../accounts/Leave";
import { n, t } from "../../core/format/language";

type Run = (work: () => Promise<unknown>, said?: string) => Promise<void>;

interface Act {
  label: string;
  text: string;
  danger?: boolean;
  act: () => void;
}

export function Manage({ user, run, busy, error, close }: {
  user: User;
  run: Run;
  busy: boolean;
  error: JSX.Element | null;
  close: () => void;
}): JSX.Element {
  const { client, session } = useHub();
  const [made, setMade] = useState("");
  const [leaves, setLeaves] = useState(false);
  const [failed, setFailed] = useState<unknown>(null);
  const name = user.username;
  const mine = name === session.username;
  const put = (action: "logout" | "stop_servers" | "admin", said: string, body?: unknown): void => void run(() => client.put(paths.userAction(name, action), body), said);
  // not by `run`, which closes: the answer has to be read
  const reset = (): void => {
    client.put<{ password: string | null }>(paths.userAction(name, "password"), {}).then((done) => setMade(done.password ?? ""), setFailed);
  };
  const acts: (Act | null)[] = [
    user.servers ? { label: t("Stop notebook"), text: n("Stops 1 notebook server. Saved files stay, running work in it is lost.", "Stops {n} notebook servers. Saved files stay, running work in them is lost.", user.servers), act: () => put("stop_servers", t("Notebook of {name} stopped", { name })) } : null,
    mine ? null : { label: t("New password"), text: t("Creates a new password, which you give to {name}. The old password ends, and so do all logins, tokens and notebook servers. Jobs continue.", { name }), act: reset },
    mine ? null : { label: t("Log out everywhere"), text: t("Ends all logins and tokens of {name} and stops notebook servers. Jobs continue.", { name }), act: () => put("logout", t("{name} is logged out everywhere", { name })) },
    mine || user.state !== "Actived" ? null : user.admin
      ? { label: t("Remove as admin"), text: t("{name} keeps the account, and sees only own jobs and teams.", { name }), danger: true, act: () => put("admin", t("{name} is no longer an administrator", { name }), { admin: false }) }
      : { label: t("Make admin"), text: t("{name} can do everything that you can: users, teams, all jobs.", { name }), danger: true, act: () => put("admin", t("{name} is an administrator", { name }), { admin: true }) },
    mine || user.state !== "Actived" ? null : {
      label: t("Deactivate"),
      text: t("{name} is logged out and cannot log in until approved again. Before that, you see what happens to jobs and files.", { name }),
      danger: true,
      act: () => setLeaves(true),
    },
  ];
  const open = acts.filter((a) => a !== null);
  if (leaves) return <Leave name={name} run={run} busy={busy} error={error} close={close} />;
  return (
    <Dialog title={t("Account of {name}", { name })} onClose={close}>
      {made ? (
        <div class="mlp-dialog-text" role="status">
          <p>{t("The password of {name} is now", { name })}</p>
          <p>
            <code>{made}</code>
          </p>
          <p>{t("You see it only once. The user should change it at the next login.")}</p>
        </div>
      ) : (
        <dl class="mlp-acts">
          {open.map((a) => (
            <div key={a.label}>
              <dt>
                <button type="button" class={`mlp-button mlp-small${a.danger ? " mlp-quiet-danger" : ""}`} disabled={busy} onClick={a.act}>
                  {a.label}
                </button>
              </dt>
              <dd>{a.text}</dd>
            </div>
          ))}
        </dl>
      )}
      {!open.length ? <p class="mlp-dialog-text">{t("You change your own password on the hub's page Password. There you can also log out everywhere.")}</p> : null}
      {failed ? <ErrorBox error={failed} /> : error}
      <div class="mlp-dialog-buttons">
        <button type="button" class="mlp-button" data-autofocus onClick={close}>
          {t("Close")}
        </button>
      </div>
    </Dialog>
  );
}
