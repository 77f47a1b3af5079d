/** What somebody new here does first; it goes when all is done, or when it is dismissed. */
import type { ComponentChildren, JSX } from "preact";
import { useLayoutEffect } from "preact/hooks";
import { Icon } from "../../components/basics/basics";
import { useLoad } from "../../components/basics/hooks";
import { rich } from "../../components/basics/language";
import { paths } from "../../core/service/api";
import { hasServer, kept, remember, steps } from "../../core/accounts/firststeps";
import { t } from "../../core/format/language";
import type { Usage } from "../../core/service/wire";
import { href, hubPage, Link } from "../shared/address";
import { useHub } from "../shared/context";

const EVERY = 10_000;
/** A sample in the home of whoever looks; the hub starts their server first where none runs. */
const sample = (name: string): string => hubPage(`user-redirect/lab/tree/${name}.ipynb`);

/** Whether the card is shown. */
export const stepsLeft = (user: string, finished: boolean): boolean => steps(kept(user), finished, false) !== null;

/** `gone` is called once the card is no longer there. */
export function FirstSteps({ finished, gone }: { finished: boolean; gone: () => void }): JSX.Element | null {
  const { session } = useHub();
  const dismiss = (): void => {
    remember(session.username, { dismissed: true });
    gone();
  };
  if (!stepsLeft(session.username, finished)) return null;
  return <Card finished={finished} dismiss={dismiss} />;
}

/** Once the card has gone: the samples are still there. */
export function Samples(): JSX.Element {
  return (
    <p class="mlp-dim mlp-kept">
      {rich(t("Samples in your home directory: {first}, {sweep}, {keras}."), {
        first: <a class="mlp-link" href={sample("01-digits-mpi")}>{t("a first distributed job")}</a>,
        sweep: <a class="mlp-link" href={sample("04-digits-sweep")}>{t("a sweep over its parameters")}</a>,
        keras: <a class="mlp-link" href={sample("05-digits-keras")}>{t("Keras with its callback")}</a>,
      })}
    </p>
  );
}

function Card({ finished, dismiss }: { finished: boolean; dismiss: () => void }): JSX.Element | null {
  const { client, session } = useHub();
  const user = session.username;
  const usage = useLoad("quota", () => client.list<Usage>(paths.quota(user)), EVERY);
  const server = hasServer(user, usage.data?.items ?? []);
  // before it is painted: a page that is loaded again at once has seen it
  useLayoutEffect(() => remember(user, { begun: true, ...(server ? { server } : {}) }), [user, server]);
  const done = steps({ ...kept(user), begun: true }, finished, server);
  if (!done) return null;
  return (
    <section class="mlp-card" aria-label={t("First steps")}>
      <div class="mlp-card-head">
        <h2>{t("First steps")}</h2>
        <button type="button" class="mlp-button mlp-small mlp-head-end" onClick={dismiss}>{t("Dismiss")}</button>
      </div>
      <ol class="mlp-first">
        <Step done={done.server} about={t("Choose its size, or use the suggestion.")}>
          <a class="mlp-link" href={hubPage("spawn")}>{t("Start a notebook")}</a>
        </Step>
        <Step done={done.job} about={t("It is in your home directory: two ranks learn to read digits in about a minute.")}>
          <a class="mlp-link" href={sample("01-digits-mpi")}>{t("Run the sample")}</a>
        </Step>
        <Step done={done.quota} about={t("Your team's quota and its current users.")}>
          <Link to={href("quota")}>{t("See your quota")}</Link>
        </Step>
      </ol>
      <p class="mlp-dim mlp-first-next">
        {rich(t("The next samples: {sweep}, and {keras}."), {
          sweep: <a class="mlp-link" href={sample("04-digits-sweep")}>{t("a sweep over its parameters")}</a>,
          keras: <a class="mlp-link" href={sample("05-digits-keras")}>{t("Keras with its callback")}</a>,
        })}
      </p>
    </section>
  );
}

function Step({ done, about, children }: { done: boolean; about: string; children: ComponentChildren }): JSX.Element {
  return (
    <li class={done ? "mlp-first-done" : ""}>
      <span class="mlp-first-mark">{done ? <Icon name="good" /> : null}</span>
      <span>
        {children}
        {done ? <span class="mlp-hidden">{" "}{t("(done)")}</span> : null}
        <span class="mlp-dim mlp-under">{about}</span>
      </span>
    </li>
  );
}
