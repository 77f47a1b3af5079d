/** Objects of the REST contract as they cross the wire: made from the OpenAPI document by `make docs`, not by hand. */
/**
 */
export type Frame = JobFrame | MetricsFrame | EventsFrame | AttemptsFrame | LogFrame | WhyFrame | SyncedFrame | EndFrame;

/**
 * Body of every refused request (403). `msg` is in the reader's language, `detail` the same as data.
 *
 * `facts` are there where the scheduler says why, as for a job that waits; else there are none.
 */
export interface Refusal {
  msg: string;
  reason:
    | "Invalid"
    | "NotFound"
    | "Conflict"
    | "WrongState"
    | "Forbidden"
    | "LoginTooOld"
    | "ExceedsMaxQuota"
    | "WaitingForQuota"
    | "NoMatchingFlavor"
    | "WaitingForResources"
    | "TopologyPlacementFailed"
    | "WaitingForPreempted"
    | "Reserved"
    | "DiskFull"
    | "TenantMoves"
    | "Suspended"
    | "StoppedEarly"
    | "Gated";
  detail: {
    [k: string]: unknown;
  };
  facts: Fact[];
}
/**
 * A row of the table below a reason: what it is (`label` in the reader's words), how much, and who it is about.
 *
 * `key` names it for programs, with its `dimension` where it has one; `number` is its value where that is a number, in the
 * units of quotas and in seconds.
 */
export interface Fact {
  key: string;
  dimension: string | null;
  label: string;
  value: string;
  number: number | null;
  who: string;
  /**
   * The sentence as data: `id`, its English template, and its `args`.
   */
  detail: {
    [k: string]: unknown;
  };
}
/**
 * Body of every server fault (503), as that of refused requests without a reason.
 */
export interface Fault {
  msg: string;
  detail: {
    [k: string]: unknown;
  };
}
/**
 * Who is asking; what a page needs before anything else.
 *
 * `warnings` are for platform admins: what is set less safe than it could be. `language` is the chosen one, empty where
 * none was. `images`: jobs run in containers here, so that environments are images.
 */
export interface Session {
  username: string;
  admin: boolean;
  tenants: string[];
  tenant_admin: string[];
  xsrf: string;
  version: string;
  keeping: Keeping;
  warnings: string[];
  language: string;
  images: boolean;
}
/**
 * How long the hub keeps a user's jobs that have ended; null: without a limit.
 *
 * They go `job_days` days after they ended; of more than `jobs`, or of more than `job_mib` in the database, the oldest first.
 */
export interface Keeping {
  job_days: number | null;
  jobs: number | null;
  job_mib: number | null;
}
/**
 * How the platform stands: `ok`; `degraded`, with problems beside which requests are served; or `failing`.
 */
export interface Health {
  status: string;
  version: string;
  problems: HealthProblem[];
}
/**
 * Something that does not work, in words for everybody.
 */
export interface HealthProblem {
  component: string;
  reason: string;
  message: string;
}
/**
 * Whether a replica serves requests, its name, and that of the one which decides, where it is known; neither says on which machine.
 */
export interface Ready {
  ready: boolean;
  replica: string;
  leader: string | null;
  msg: string;
}
/**
 * Sign up. The password goes to the hub's authenticator and is kept nowhere else.
 */
export interface UserCreate {
  username: string;
  password: string;
  tenant?: string | null;
}
/**
 * A user of the hub. `new` is who asked for an account and was never let in, `applied_for` the tenant they named.
 *
 * `servers` is how many notebook servers of theirs run.
 */
export interface User {
  username: string;
  state: "Actived" | "NotActive";
  tenants: string[];
  admin: boolean;
  default_tenant: string;
  new: boolean;
  applied_for: string | null;
  servers: number;
}
/**
 * A user, as clients of the interface document send one with the request that closes the account: `username` has to be theirs.
 */
export interface UserClosed {
  username?: string | null;
  password?: string | null;
  state?: string | null;
}
/**
 * What a user has here, all of which somebody decides on who closes the account.
 *
 * Notebook servers, tokens and sessions end, `apps` are deleted; `running` jobs finish or are stopped, `waiting` ones are put aside or stopped,
 * `suspended` and `ended` ones stay or go with the files, as `datasets` and `models` (versions of them) do, which take `stored` bytes. `bytes` is the size of the home where it is known. `departure` is
 * null unless the account was closed since it was let in last.
 */
export interface Leaving {
  username: string;
  state: "Actived" | "NotActive";
  tenants: string[];
  running: number;
  waiting: number;
  suspended: number;
  ended: number;
  servers: number;
  tokens: number;
  datasets: number;
  models: number;
  stored: number;
  apps: number;
  bytes: number | null;
  departure: Departing | null;
}
/**
 * What was chosen for a user who leaves, and how far that has come: `closing`, `ending`, `removing`, `left`.
 *
 * `stopped`, `suspended` and `removed` say with how many jobs that was done so far.
 */
export interface Departing {
  stage: "closing" | "ending" | "left" | "removing";
  jobs: "finish" | "stop";
  files: "keep" | "remove";
  actor: string;
  since: string;
  stopped: number;
  suspended: number;
  removed: number;
}
/**
 * Another password for somebody. Without one it is made up, and told in the answer, once.
 */
export interface PasswordReset {
  password?: string | null;
}
/**
 * What an administrator tells somebody whose password they set; `password` where it was made up.
 */
export interface PasswordSet {
  username: string;
  password: string | null;
}
/**
 * Whether somebody is to be an administrator of the platform.
 */
export interface AdminRight {
  admin: boolean;
}
/**
 * What somebody chose for themselves. `language`: all that they read is in it; empty: as browser or terminal asks.
 */
export interface Preferences {
  language: "" | "en" | "zh-CN";
}
/**
 * What the spawner needs to know of a user: `GET /users/{user}:spawn`, with the ledger's scope only.
 *
 * Where the hub runs as root, the user's processes run as system user `first_uid` plus `number`.
 */
export interface SpawnInfo {
  number: number;
  tenants: string[];
  default_tenant: string;
  room: {
    [k: string]: SpawnRoom;
  };
}
/**
 * What is left of a tenant's quota: cpu in cores, ram in MiB, gpu in devices. Null quotas: what the nodes have.
 *
 * `gpu_kinds` are the kinds that nodes have and the tenant may use. `cpu_borrow` and `ram_borrow`: what others leave idle now and it may have besides. `cpu_back` and `ram_back`: of its own quota, what a server would have besides by taking it back from tenants that
 * borrowed it (`back_from`). `network` is what the tenant says of its jobs and notebooks, null where it says nothing, and
 * `job_network` what its jobs have: `none` or `outbound`. `environments` are those that are ready, by name.
 */
export interface SpawnRoom {
  cpu: number | null;
  cpu_free: number | null;
  ram: number | null;
  ram_free: number | null;
  gpu: number | null;
  gpu_free: number | null;
  gpu_kinds: string[];
  cpu_borrow: number;
  ram_borrow: number;
  cpu_back: number;
  ram_back: number;
  back_from: string[];
  network: string | null;
  job_network: string;
  environments: SpawnEnvironment[];
}
/**
 * An environment that notebook servers of a tenant may be started with: the `image` of their pods, else the `kernel` of new notebooks.
 */
export interface SpawnEnvironment {
  uid: string;
  name: string;
  image: string | null;
  kernel: string | null;
}
/**
 * Why the platform is stopping a user's notebook servers; `why` is empty where it is not.
 */
export interface ServerStop {
  why: string;
}
/**
 * Lines of CSV: name, team, admin; a first line may name the columns. With `dry_run` it is only said what would be done.
 */
export interface PeopleImport {
  csv: string;
  dry_run?: boolean;
}
/**
 * All lines in order, and how many of them do something, or did, and are refused.
 */
export interface PeopleImported {
  people: ImportedPerson[];
  done: number;
  refused: number;
}
/**
 * What becomes, or would become, of one line.
 *
 * `new`: the account is made; `joins`: it is there, and put into the team; `there`: nothing is to be done; `made` and `joined`:
 * that was done; `refused`: nothing is done, for what `note` says. A `password` is shown this once.
 */
export interface ImportedPerson {
  line: number;
  name: string;
  team: string;
  admin: boolean;
  state: "joined" | "joins" | "made" | "new" | "refused" | "there";
  note: string;
  password: string | null;
}
/**
 * A token of somebody, without what it is. `scopes` are the platform's that it holds.
 *
 * `last_used` is kept by the hub, some minutes apart; `last_from` is the address it came from last, empty where it was not
 * used here. `current` is the token that asks; `ends_soon`: within five days.
 */
export interface TokenInfo {
  id: string;
  note: string;
  scopes: string[];
  created: string | null;
  expires: string | null;
  last_used: string | null;
  last_from: string;
  current: boolean;
  ends_soon: boolean;
}
/**
 * A token of one's own for a program.
 *
 * No `scopes`: all that the asking token holds. No `expires_in` (seconds): 30 days, or as long as that token holds if less.
 */
export interface TokenAsk {
  note: string;
  scopes?: string[] | null;
  expires_in?: number | null;
}
/**
 * A token that was just made. Nobody can show it again.
 */
export interface TokenGiven {
  token: string;
  note: string;
  scopes: string[];
  expires: string;
}
/**
 * A token of somebody, for the operator's command. No `scopes`: all that the user may; no `expires_in`: for ever.
 */
export interface TokenCreate {
  note: string;
  scopes?: string[] | null;
  expires_in?: number | null;
}
/**
 * A token that the hub gave somebody on its own page, for the audit log: who asked, what for, what it may, until when.
 */
export interface TokenMade {
  actor: string;
  note: string;
  scopes: string;
  expires: string;
}
/**
 * A token that was ended at the hub itself, for the audit log: by whom, and which: its note and the hub's id.
 */
export interface TokenEnded {
  actor: string;
  note: string;
  token: string;
}
/**
 * From where a token was used last, by the hub's id, and since when from there: seconds since 1970.
 */
export interface TokenUse {
  id: string;
  address: string;
  at: number;
}
/**
 * How somebody stands at the login's provider, reported by the hub that asked it.
 *
 * `groups` are theirs now; `left_out` says which are not taken, and why. `ended`: their account was taken away there
 * (`disabled`), or only that login ended (`session`): then groups are as they were last known. `tokens`: how many of
 * theirs ended because the account was taken away just now. `admin`: a group made them a platform admin just now, or no longer.
 */
export interface LoginStanding {
  /**
   * @maxItems 1000
   */
  groups?: string[];
  /**
   * @maxItems 20
   */
  left_out?: string[];
  ended?: "" | "disabled" | "session";
  tokens?: number | null;
  admin?: boolean | null;
}
/**
 * Whether the login's provider answers, reported by the hub that asks it.
 *
 * `refuses`: the provider's words where it answers and does not accept this hub, so that logins fail.
 */
export interface ProviderStanding {
  away: boolean;
  refuses?: string;
}
/**
 * An account of a tenant: as which user it works, who made it and when, and its tokens.
 */
export interface ServiceAccount {
  name: string;
  user: string;
  made_by: string;
  made_at: string;
  tokens: TokenInfo[];
}
/**
 * An account of a tenant, with its first token. No `expires_in` (seconds): 90 days.
 */
export interface ServiceCreate {
  name: string;
  expires_in?: number | null;
}
/**
 * A token of an account of a tenant that was just made. Nobody can show it again. `old_until`: when those before it end.
 */
export interface ServiceTokenGiven {
  user: string;
  token: string;
  expires: string;
  old_until: string | null;
}
/**
 * Another token for an account of a tenant. `grace`: seconds that those before it are taken still.
 */
export interface ServiceRotate {
  expires_in?: number | null;
  grace?: number;
}
/**
 * A tenant, its quota (null: what the nodes have) and what is in use of it.
 *
 * `borrowed`, `lent`, `lendable` and `free` are by dimension (`cpu`, `gpu`, `gpu:KIND`, `ram`, `rom`), zeroes of the
 * first three left out. borrowed: held beyond its quota. lent: of its idle quota, what others hold now (where several
 * could have lent it, each counts in proportion to what it leaves idle). lendable: what it would still lend. free:
 * what it may take now, borrowing included; where it has no limit nothing is said. over: held beyond all that it may hold
 * with others as they are, as after its quota was lowered; nothing is stopped for that alone. lowered: what of its guarantee holds
 * while it is lowered because the tenant is idle for long; `lending_limit` and `reserved` are as configured. notes: in
 * the answer to a change, the booked windows, of this tenant or others, that no longer fit by it, or fit again.
 * `isolation` is how its files are to be kept, `move` where they are on their way there, null where they never were elsewhere.
 * `network` is as configured (null: as the hub's settings say), `job_network` what its jobs have: `none` or `outbound`.
 * `running` and `waiting` count jobs, no replicas of apps.
 */
export interface Tenant {
  name: string;
  cpu: number | null;
  gpu: number | null;
  ram: number | null;
  rom: number | null;
  gpu_kinds: {
    [k: string]: number;
  };
  cpu_inuse: number;
  gpu_inuse: number;
  ram_inuse: number;
  rom_inuse: number;
  weight: number;
  cohort: string | null;
  parent: string | null;
  borrowing_limit: {
    [k: string]: number;
  } | null;
  lending_limit: {
    [k: string]: number;
  } | null;
  reserved: {
    [k: string]: number;
  } | null;
  borrowed: {
    [k: string]: number;
  };
  lent: {
    [k: string]: number;
  };
  lendable: {
    [k: string]: number;
  };
  free: {
    [k: string]: number;
  };
  over: {
    [k: string]: number;
  };
  lowered: LoweredGuarantee | null;
  queue_order: string;
  isolation: string;
  data_root: string;
  move: IsolationMove | null;
  network: string | null;
  job_network: string;
  leavers: string;
  datasets: string;
  joining: string;
  description: string;
  members: number;
  running: number;
  waiting: number;
  notes: string[];
}
/**
 * What a tenant that is idle for long keeps back and reserves, until one of its jobs waits or a server of it asks.
 */
export interface LoweredGuarantee {
  since: string;
  share: number;
  lending_limit: {
    [k: string]: number;
  } | null;
  reserved: {
    [k: string]: number;
  } | null;
  message: string;
}
/**
 * The last time that a tenant's files were moved from one grade of isolation to another.
 *
 * `state`: `waiting` for what runs, `copying`, `comparing`, `removing` what was copied, `done`; `undoing` and `failed` where it was
 * called off or cannot be done, as `message` says. `done` and `total` are bytes of the present state.
 */
export interface IsolationMove {
  state: string;
  old: string;
  new: string;
  done: number;
  total: number;
  message: string;
  asked_by: string;
  asked_at: string;
  ended_at: string | null;
}
/**
 * A new tenant. A quota left out (null) means: what the nodes have.
 */
export interface TenantCreate {
  /**
   * a-z, 0-9 and -, 1 to 50 characters
   */
  name: string;
  cpu?: number | null;
  gpu?: number | null;
  ram?: number | null;
  rom?: number | null;
  gpu_kinds?: {
    [k: string]: number;
  };
  weight?: number;
  /**
   * tenants of one cohort lend each other what they leave idle
   */
  cohort?: string | null;
  /**
   * the tenant out of whose quota this one's is carved; it shares with its siblings
   */
  parent?: string | null;
  /**
   * the most it may hold beyond its quota; left out: all that the others leave
   */
  borrowing_limit?: {
    [k: string]: number;
  } | null;
  /**
   * the most of its quota that others may hold; left out: all of it
   */
  lending_limit?: {
    [k: string]: number;
  } | null;
  /**
   * kept free for it on the nodes, used or not, whatever others may borrow; not above the quota
   */
  reserved?: {
    [k: string]: number;
  } | null;
  /**
   * what its own jobs go by: `priority` (priority, then age); `fifo` (age alone); `fair` (turns of its members, by what they use now and lately); `maxmin` (turns of its members, by what they use now). Under age alone no job of it stops another for its priority; in turns each member's jobs go by priority. Where the hub orders the jobs of all tenants in one line, that order holds instead
   */
  queue_order?: "fair" | "fifo" | "maxmin" | "priority";
  /**
   * how the tenant's datasets, models and jobs' directories are kept: in the tree of all with directories of their own, encrypted with a key of its own, or in a root of its own. A change moves them: see `move` of the tenant. With a cluster there is `shared` alone
   */
  isolation?: "dedicated" | "encrypted" | "shared";
  /**
   * with `dedicated`, the absolute path of a directory for this tenant alone: empty, or one that can be made
   */
  data_root?: string;
  /**
   * what its jobs and notebooks may reach: `none`, nothing but themselves; `outbound`, other machines, but never this one; left out: what the hub's settings `job_network` and `notebook_network` say. What is started later follows it
   */
  network?: ("none" | "outbound") | null;
  /**
   * what happens to running jobs of who leaves it, or whose account is taken away: `finish`, they go on to their end; `stop`, they are cancelled. Those that wait are put aside, and notebook servers end, either way
   */
  leavers?: "finish" | "stop";
  /**
   * which of its datasets a member's jobs may read: `own`, the member's; `members`, those of all its members
   */
  datasets?: "members" | "own";
  /**
   * whether people may ask for a place in it: `closed`, they are not even told that it is there; `asked`, it is among the teams on their page with its description, and its admins decide
   */
  joining?: "asked" | "closed";
  description?: string;
}
/**
 * All that a tenant is from now on; `name` may be left out and must match the path otherwise.
 */
export interface TenantUpdate {
  name?: string | null;
  cpu?: number | null;
  gpu?: number | null;
  ram?: number | null;
  rom?: number | null;
  gpu_kinds?: {
    [k: string]: number;
  };
  weight?: number;
  /**
   * tenants of one cohort lend each other what they leave idle
   */
  cohort?: string | null;
  /**
   * the tenant out of whose quota this one's is carved; it shares with its siblings
   */
  parent?: string | null;
  /**
   * the most it may hold beyond its quota; left out: all that the others leave
   */
  borrowing_limit?: {
    [k: string]: number;
  } | null;
  /**
   * the most of its quota that others may hold; left out: all of it
   */
  lending_limit?: {
    [k: string]: number;
  } | null;
  /**
   * kept free for it on the nodes, used or not, whatever others may borrow; not above the quota
   */
  reserved?: {
    [k: string]: number;
  } | null;
  /**
   * what its own jobs go by: `priority` (priority, then age); `fifo` (age alone); `fair` (turns of its members, by what they use now and lately); `maxmin` (turns of its members, by what they use now). Under age alone no job of it stops another for its priority; in turns each member's jobs go by priority. Where the hub orders the jobs of all tenants in one line, that order holds instead
   */
  queue_order?: "fair" | "fifo" | "maxmin" | "priority";
  /**
   * how the tenant's datasets, models and jobs' directories are kept: in the tree of all with directories of their own, encrypted with a key of its own, or in a root of its own. A change moves them: see `move` of the tenant. With a cluster there is `shared` alone
   */
  isolation?: "dedicated" | "encrypted" | "shared";
  /**
   * with `dedicated`, the absolute path of a directory for this tenant alone: empty, or one that can be made
   */
  data_root?: string;
  /**
   * what its jobs and notebooks may reach: `none`, nothing but themselves; `outbound`, other machines, but never this one; left out: what the hub's settings `job_network` and `notebook_network` say. What is started later follows it
   */
  network?: ("none" | "outbound") | null;
  /**
   * what happens to running jobs of who leaves it, or whose account is taken away: `finish`, they go on to their end; `stop`, they are cancelled. Those that wait are put aside, and notebook servers end, either way
   */
  leavers?: "finish" | "stop";
  /**
   * which of its datasets a member's jobs may read: `own`, the member's; `members`, those of all its members
   */
  datasets?: "members" | "own";
  /**
   * whether people may ask for a place in it: `closed`, they are not even told that it is there; `asked`, it is among the teams on their page with its description, and its admins decide
   */
  joining?: "asked" | "closed";
  description?: string;
}
/**
 * What an update of a tenant would mean; nothing is changed by asking.
 *
 * The update itself stops nothing. `stopped` are jobs that others would take the room of, as the scheduler decides on
 * the tenants as they would be. `back_inside`: when the tenant is expected to hold no more than it may, from the time
 * limits of what runs; null when it does anyway or when no time can be told (`back_inside_because` says which end
 * makes it so, or why there is none). Lists hold 20 jobs at most; `notes` say all in sentences and count all.
 */
export interface TenantPreview {
  tenant: string;
  over: PreviewOver[];
  could_start: PreviewJob[];
  waiting: PreviewWait[];
  stopped: PreviewStop[];
  back_inside: string | null;
  back_inside_because: string;
  bookings: PreviewBooking[];
  notes: PreviewNote[];
}
/**
 * A tenant that would hold more of a dimension than it may hold then, with all others as they are.
 */
export interface PreviewOver {
  tenant: string;
  dimension: string;
  inuse: number;
  may_hold: number;
  above: number;
}
/**
 * A job of a preview.
 */
export interface PreviewJob {
  user: string;
  name: string;
  tenant: string;
}
/**
 * A job of the tenant that would wait then: since when (the last time that it was put into the queue), and why.
 */
export interface PreviewWait {
  user: string;
  name: string;
  since: string;
  reason: string;
  message: string;
}
/**
 * A running job that would be stopped (`shrunk`: lose workers) then, for which other job, and why.
 */
export interface PreviewStop {
  user: string;
  name: string;
  tenant: string;
  for_user: string;
  for_name: string;
  for_tenant: string;
  shrunk: boolean;
  message: string;
}
/**
 * A booked window, of any tenant, that would no longer fit (`short`) or would fit again (null).
 */
export interface PreviewBooking {
  tenant: string;
  name: string;
  start: string;
  end: string;
  short: BookingShort | null;
}
/**
 * That a window can no longer be held in full: since when, what of it is kept free all the same, and why.
 */
export interface BookingShort {
  since: string;
  left: {
    [k: string]: number;
  };
  message: string;
}
/**
 * One sentence of a preview, with its tone.
 */
export interface PreviewNote {
  tone: "bad" | "good" | "idle" | "wait";
  text: string;
}
/**
 * One tenant's quota and who uses it, as its members may see it. `history` are the hours of the last 7 days, the oldest first.
 *
 * `history` shows how it went; `jobs` is exact, up to half a minute ago.
 */
export interface Usage {
  tenant: Tenant;
  holdings: Holding[];
  jobs: UsageTotal;
  history: UsageHour[];
}
/**
 * Somebody who holds part of a quota; `job` is the name of the job that does, `name@run` of a later run, where it is one.
 *
 * Of a replica of an app, `app` is its name and `replica` which one it is.
 */
export interface Holding {
  holder: string;
  user: string;
  applier: string;
  cpu: number;
  gpu: number;
  ram: number;
  rom: number;
  since: string;
  job: string | null;
  app: string | null;
  replica: number | null;
}
/**
 * What the jobs of a tenant took in the last 7 days, of the runs that are kept: core-hours, device-hours, the most at once.
 */
export interface UsageTotal {
  cpu_hours: number;
  gpu_hours: number;
  cpu_most: number;
  gpu_most: number;
}
/**
 * What a tenant held in one hour, which begins at `time`: the mean of what was seen every 5 minutes, and the most jobs at once.
 *
 * `cpu` and `gpu` are units, held by jobs, servers and apps; for sums of what jobs took there is `jobs` beside it. `ram` is in MiB, `rom` in bytes. Hours in which the hub was down are left out.
 */
export interface UsageHour {
  time: string;
  cpu: number;
  gpu: number;
  ram: number;
  rom: number;
  running: number;
  waiting: number;
}
/**
 * A user's place in a tenant.
 *
 * `note` says what else came with it: a first tenant takes the place in `default`, unless an admin of that tenant gave it, who takes
 * nobody out of another. `managed_by` is who keeps the place where it follows a group of a login's provider, and it is changed there; else empty.
 */
export interface Member {
  tenant: string;
  user: string;
  role: string;
  source: string;
  note: string;
  managed_by: string;
}
/**
 * A member's role.
 */
export interface MemberUpdate {
  role?: "admin" | "member";
}
/**
 * A request for more quota. The amounts are what the tenant would have, null where nothing is asked; `word` is the answer's.
 */
export interface QuotaRequest {
  id: string;
  tenant: string;
  user: string;
  asked_at: string;
  cpu: number | null;
  gpu: number | null;
  ram: number | null;
  rom: number | null;
  reason: string;
  state: "accepted" | "declined" | "open" | "withdrawn";
  decided_by: string | null;
  decided_at: string | null;
  word: string;
}
/**
 * What a tenant is to have, all together, of each dimension that is named; the others stay. `reason` says what for.
 */
export interface QuotaAsk {
  reason: string;
  cpu?: number | null;
  gpu?: number | null;
  ram?: number | null;
  rom?: number | null;
}
/**
 * A word to those who asked.
 */
export interface QuotaAnswer {
  word?: string;
}
/**
 * The tenants that somebody may ask; none where `managed_by`, who manages the groups of people, decides on all places.
 */
export interface Teams {
  teams: Team[];
  managed_by: string;
}
/**
 * A tenant that may be asked for a place; `asked_at` is when this person did, null where they have not.
 */
export interface Team {
  tenant: string;
  description: string;
  asked_at: string | null;
}
/**
 * Whom one asks for a place, and a word to its admins.
 */
export interface JoinAsk {
  /**
   * a-z, 0-9 and -, 1 to 50 characters
   */
  tenant: string;
  note?: string;
}
/**
 * A person's request for a place in a tenant.
 */
export interface JoinRequest {
  tenant: string;
  user: string;
  asked_at: string;
  note: string;
}
/**
 * Who did what to which object: `tenant.update` to `red`. `detail` depends on the action.
 *
 * `actor` is a user's name, or `system` for what the hub did by itself.
 */
export interface AuditEntry {
  id: number;
  time: string;
  actor: string;
  action: string;
  object: string;
  tenant: string | null;
  detail: {
    [k: string]: unknown;
  };
}
/**
 * The most that a member, or each who has no cap of their own (`user` null), may hold at once with all jobs and notebook servers in the tenant.
 */
export interface MemberCap {
  user: string | null;
  cpu: number | null;
  gpu: number | null;
  jobs: number | null;
}
/**
 * The most that a member may hold at once with all jobs and notebook servers in the tenant: null is as much as the tenant may.
 *
 * `user` null means each member who has no cap of their own. One in which all is null is taken away.
 */
export interface MemberCapSet {
  user?: string | null;
  cpu?: number | null;
  gpu?: number | null;
  jobs?: number | null;
}
/**
 * A booked window that is not over.
 *
 * `open`: it has begun. `short`: a quota was lowered or nodes left, and it no longer fits; null while all of it can be
 * held, and again as soon as it can. `notes`: what else is to be known, in sentences.
 */
export interface Booking {
  tenant: string;
  name: string;
  start: string;
  end: string;
  amount: {
    [k: string]: number;
  };
  open: boolean;
  made_by: string;
  made_at: string;
  short: BookingShort | null;
  notes: string[];
}
/**
 * A new booked window: from `start` to before `end` the amount is kept free for the tenant, besides what it reserves.
 */
export interface BookingCreate {
  /**
   * a-z, 0-9 and -, 1 to 50 characters
   */
  name: string;
  start: string;
  end: string;
  /**
   * what is kept free: cpu, gpu, gpu:KIND, ram
   */
  amount: {
    [k: string]: number;
  };
}
/**
 * A way to run a program on several ranks; `ps` says whether it may have parameter servers.
 *
 * `tenant` is whose it is, null for the platform's own. New jobs may use it while its `state` is `approved`.
 */
export interface RuntimeInfo {
  name: string;
  title: string;
  description: string;
  ps: boolean;
  tenant: string | null;
  state: "approved" | "disabled" | "submitted";
  program: string[];
  env: {
    [k: string]: string;
  };
  roles: RuntimeRole[];
  launcher: string[] | null;
  rank_env: string;
  needs: string | null;
  image: string | null;
  ends_with: string | null;
  linger_s: number;
  success: number[];
  changed_by: string | null;
  changed_at: string | null;
}
/**
 * A role of ranks: `count` of those that `--workers` gives, all that are left where it is null.
 *
 * Ranks of the role `ps` come besides, as many as `--ps` says. `program` is the command of such a rank, where it is not the
 * runtime's.
 */
export interface RuntimeRole {
  name: string;
  count: number | null;
  program: string[] | null;
}
/**
 * A tenant's runtime. Commands are lists of arguments and no shell reads them; they and `env` may have places in braces.
 *
 * `launcher` starts the ranks, each told its number in the variable `rank_env`; without one they are started side by side.
 * `needs` is the Python package without which no program can start. The job has ended when all ranks have, or `linger_s`
 * seconds after the first rank of the role `ends_with` at the latest. Exit statuses in `success` are no failure; 0 never is.
 */
export interface RuntimeUpdate {
  title: string;
  description?: string;
  /**
   * @minItems 1
   * @maxItems 64
   */
  program?: string[];
  env?: {
    [k: string]: string;
  };
  /**
   * @minItems 1
   * @maxItems 8
   */
  roles?: RuntimeRole[];
  launcher?: string[] | null;
  rank_env?: string;
  needs?: string | null;
  image?: string | null;
  ends_with?: string | null;
  linger_s?: number;
  /**
   * @maxItems 16
   */
  success?: number[];
}
/**
 * A job to run: `entry` is a path in the user's home, or `code` the program's text; exactly one of them.
 *
 * `workdir` is the directory in which it starts, a path below the home too; null: the home, or the directory of a notebook.
 *
 * A name that is used again, when its latest run has ended, makes its next run; with `replace` the earlier ones are deleted.
 * cpu, gpu and ram are per rank, a parameter server's too.
 */
export interface JobCreate {
  runtime?: string | null;
  workers?: number | string;
  ps?: number;
  cpu?: number;
  gpu?: number;
  gpu_kind?: string | null;
  ram?: number;
  tenant?: string | null;
  /**
   * a-z, 0-9 and -, 1 to 50 characters
   */
  priority?: string;
  time_limit?: number | null;
  retries?: number;
  checkpoint_every?: number | null;
  topology?: string | null;
  tensorboard?: "off" | "on";
  /**
   * datasets that its ranks see, read-only: NAME or USER/NAME, with :PATH behind it to see it there too; USER/NAME/PART has a part of one that is read through fetched
   *
   * @maxItems 32
   */
  data?: string[];
  env_name?: string | null;
  /**
   * letters, digits, -, _ and ., not beginning with - or ., 1 to 50 characters
   */
  name: string;
  entry?: string | null;
  code?: string | null;
  workdir?: string | null;
  /**
   * @maxItems 1000
   */
  args?: string[];
  env?: {
    [k: string]: string;
  };
  /**
   * parameters of the program, which finds them in `mlp.params`
   */
  params?: {
    [k: string]: boolean | number | string;
  };
  replace?: boolean;
  provenance?: Provenance | null;
}
/**
 * What a client says of where it submits from; all of it are claims, kept to be shown and compared.
 *
 * The git commit of the directory, whether files in it have changed since, and the environment as lines NAME==VERSION.
 */
export interface Provenance {
  commit?: string | null;
  dirty?: boolean | null;
  environment?: string | null;
}
/**
 * A job with its status. `phase` is the fine life cycle, `state` the coarse one.
 *
 * A name has runs 1, 2, ...: `run` is which of them this is. In paths `NAME` means the latest one, `NAME@RUN` a certain one.
 *
 * A job may run in several attempts: it is stopped and waits again, or goes on in another size. `started_at` and
 * `finished_at` are of the last one. `ran_s` are the seconds that all attempts which are over ran; the one that runs has run
 * since `started_at` besides. `waited_s` are the seconds in the queue in all waits that are over; while it waits, it has
 * waited since `waiting_since` besides. What it is in the queue for counts from `queued_at`: who is stopped for others keeps
 * its age there. The present attempt began with `progress_from` at `progress_since`, null before it reported anything.
 *
 * `sweep` is the name of the sweep whose trial number `trial` it is, null of one that is no trial.
 *
 * `put_first` says that an admin of its tenant put it before the others of its queue.
 *
 * `source` is what its user made in the cluster, `MPIJob NAMESPACE/NAME`, where it has pods of its own in place of a program;
 * null for what was submitted here.
 *
 * `env_name` is the environment that its Python is of, `env_lock` the SHA-256 of the lock that this was made of, or the digest
 * that its image was named with.
 */
export interface Job {
  name: string;
  run: number;
  user: string;
  tenant: string;
  runtime: string;
  entry: string | null;
  code: string | null;
  workdir: string | null;
  args: string[];
  env: {
    [k: string]: string;
  };
  workers: number | string;
  ps: number;
  cpu: number;
  gpu: number;
  gpu_kind: string | null;
  ram: number;
  priority: string;
  time_limit: number | null;
  retries: number;
  checkpoint_every: number | null;
  topology: string | null;
  tensorboard: "off" | "on";
  data: string[];
  params: {
    [k: string]: boolean | number | string;
  };
  sweep: string | null;
  trial: number | null;
  uid: string;
  state: "creating" | "deleting" | "error" | "finished" | "running";
  phase:
    | "queued"
    | "admitted"
    | "starting"
    | "running"
    | "suspending"
    | "suspended"
    | "preempting"
    | "resizing"
    | "finishing"
    | "finished"
    | "failed"
    | "cancelling"
    | "cancelled"
    | "deleting";
  reason: string | null;
  message: string;
  /**
   * The sentence as data: `id`, its English template, and its `args`.
   */
  detail: {
    [k: string]: unknown;
  };
  progress: number;
  restarts: number;
  position: number | null;
  expected_start: string | null;
  ranks: Rank[];
  failure: Failure | null;
  submitted_at: string;
  queued_at: string | null;
  admitted_at: string | null;
  started_at: string | null;
  finished_at: string | null;
  waiting_since: string | null;
  waited_s: number;
  ran_s: number;
  progress_from: number;
  progress_since: string | null;
  put_first: boolean;
  version: number;
  source: string | null;
  env_name: string | null;
  env_lock: string | null;
}
/**
 * One process of a job.
 *
 * `cpu` and `ram` are what it uses now, null when it does not run. Once it has ended the other four say what it used: its
 * cores on average and the most over a second, its memory on average and the most, cached files not counted.
 */
export interface Rank {
  rank: number;
  role: string;
  node: string;
  state: string;
  exit_code: number | null;
  signal: number | null;
  cpu: number | null;
  ram: number | null;
  cpu_mean: number | null;
  cpu_peak: number | null;
  ram_mean: number | null;
  ram_peak: number | null;
}
/**
 * What went wrong first.
 *
 * `hint` says what probably stands behind it: `no-network`, the tenant's jobs have none and the program looked for another
 * machine; `network-missing`, the same, and this machine cannot give what the tenant may have; `memory-files`, /dev/shm or /tmp,
 * which are memory, were full; `more-memory`, it ran out of memory; `same-memory`, the same, and it was not tried again with as much; `process-limit` and `descriptor-limit`, it may have no more of them;
 * `nobody-answers`, it asked for input; `starts-at-home`, it missed a file by a path relative to another directory. `remedy` says so in a
 * sentence, with who can do something about it; empty without a hint.
 */
export interface Failure {
  cause: string;
  rank: number | null;
  exit_code: number | null;
  signal: number | null;
  message: string;
  tail: string;
  hint: string | null;
  remedy: string;
}
/**
 * What a job would be if it were created now: run `run` of its name, with `ranks_min` to `ranks_max` ranks, parameter servers included.
 *
 * `offer` says what it would take in all, and whether it would start now. What could never start is refused, as its creation is.
 */
export interface Preview {
  name: string;
  run: number;
  runtime: string;
  ranks_min: number;
  ranks_max: number;
  offer: Offer;
}
/**
 * What a job of this shape would get.
 *
 * `fits_now`: it would start as soon as those of `gives_way` have made room, at once where there are none. `gives_way` says
 * of each job that would be stopped or give up workers for it, in a sentence that names other jobs of its own tenant only;
 * `grace` are the seconds that they have to end, 0 where nobody gives way. `expected_because` says where `expected_start` comes
 * from, or why no time can be told. `network` is what jobs of `tenant` have: `none` or `outbound`.
 */
export interface Offer {
  fits_now: boolean;
  expected_start: string | null;
  placement: {
    [k: string]: number;
  };
  cpu: number;
  gpu: number;
  ram: number;
  reasons: Verdict[];
  would_start_now: string[];
  gives_way: string[];
  grace: number;
  expected_because: string;
  tenant: string;
  network: string;
}
/**
 * A typed reason: `message` is its headline in the reader's language, `detail` the same as data, `facts` what is behind it.
 *
 * `numbers` are those of the facts, by DIMENSION_KEY or KEY.
 */
export interface Verdict {
  reason: string;
  message: string;
  /**
   * The sentence as data: `id`, its English template, and its `args`.
   */
  detail: {
    [k: string]: unknown;
  };
  facts: Fact[];
  numbers: {
    [k: string]: number;
  };
}
/**
 * What is to be other than it was; what is left out stays.
 *
 * `params` are put over those that it had, `args` take the place of all. With `exactly` nothing may be other: it is refused where
 * the script, a dataset, or the environment of `provenance` is not what it was.
 */
export interface Resubmit {
  workers?: number | string;
  cpu?: number;
  gpu?: number;
  ram?: number;
  /**
   * a-z, 0-9 and -, 1 to 50 characters
   */
  priority?: string;
  time_limit?: number | null;
  /**
   * parameters of the program, which finds them in `mlp.params`
   */
  params?: {
    [k: string]: boolean | number | string;
  };
  /**
   * @maxItems 1000
   */
  args?: string[];
  exactly?: boolean;
  provenance?: Provenance | null;
}
/**
 * What is to be other of a job that has not ended; what is left out stays.
 *
 * Who owns it may lower its priority and change its time limit while it waits. An admin of its tenant may change both of any job
 * there, the time limit of one that runs too, and its `place` in the tenant's queue: `first`, before all others, or its `own` again.
 */
export interface JobUpdate {
  /**
   * a-z, 0-9 and -, 1 to 50 characters
   */
  priority?: string;
  time_limit?: number | null;
  place?: "first" | "own";
}
/**
 * A job tells how it is doing.
 */
export interface Heartbeat {
  state: "error" | "finished" | "running";
  progress: number;
}
/**
 * Why a job waits, and until when. `how_sure` is about the expected start, as long as nothing more important comes.
 *
 * `would_start_now` are the smallest changes with which it would; `cut_short` says so where not all could be tried, because
 * very much waits, and is empty otherwise. `stopped` says what became of an earlier attempt, null where there was none.
 */
export interface Why {
  job: string;
  run: number;
  phase:
    | "queued"
    | "admitted"
    | "starting"
    | "running"
    | "suspending"
    | "suspended"
    | "preempting"
    | "resizing"
    | "finishing"
    | "finished"
    | "failed"
    | "cancelling"
    | "cancelled"
    | "deleting";
  reasons: Verdict[];
  position: number | null;
  queue_length: number;
  expected_start: string | null;
  expected_because: string;
  how_sure: "likely" | "sure" | "unknown";
  sure_because: string;
  would_start_now: string[];
  cut_short: string;
  stopped: Stopped | null;
}
/**
 * That a job which waits ran before: how and when its last attempt was stopped, and what of its work is kept.
 *
 * `kind` is preempted (for another job), suspended or requeued (after a failure). `message` names other jobs of its own
 * tenant only. `checkpoint_at` is when the newest file in its checkpoint directory was written, null where there is none.
 */
export interface Stopped {
  kind: "preempted" | "requeued" | "suspended";
  time: string;
  message: string;
  /**
   * The sentence as data: `id`, its English template, and its `args`.
   */
  detail: {
    [k: string]: unknown;
  };
  kept: string;
  checkpoint_at: string | null;
}
/**
 * One step of a job's timeline.
 */
export interface Event {
  seq: number;
  time: string;
  kind: string;
  message: string;
  /**
   * The sentence as data: `id`, its English template, and its `args`.
   */
  detail: {
    [k: string]: unknown;
  };
  reason: string | null;
}
/**
 * An attempt of a job, from 1 on, with the stages that it came to, in order.
 *
 * `ended` is the kind of event with which it ended, as in the job's timeline, null while it goes on.
 */
export interface JobAttempt {
  attempt: number;
  stages: AttemptStage[];
  ended: string | null;
  ended_at: string | null;
}
/**
 * A stage that an attempt came to: when, and how many seconds after the one before; null for its first.
 *
 * It was queued, admitted, its pods created, bound to nodes, their images pulled and containers begun, its first program
 * started, the first line of output written. Where jobs run on one machine there are no pods.
 */
export interface AttemptStage {
  stage: "admitted" | "bound" | "created" | "first-line" | "pulled" | "queued" | "started";
  time: string;
  seconds: number | null;
}
/**
 * Why the scheduler did something with a job: why then, why there, why this one.
 *
 * `kind` is admitted, preempted or resized; it is told at the time of the decision, which an admission follows when those that
 * make room for it have ended. `waited_for` is what it waited for until then (`waited_reason` the type of that) and
 * `changed` what had changed since; `passed` are the first of those that were looked at before it and did not start, `passed_count`
 * how many there were; `order` is what its queue goes by, `rule` the rule of placement;
 * `nodes` are the best few places, `only` says that there was no other; `victims` are those that could have been stopped, `spared`
 * why the others could not. `share` is the tenant's dominant share before. Of cycles with very many decisions only `summary` is kept. `detail` is the summary as data.
 */
export interface Decision {
  time: string;
  kind: string;
  summary: string;
  /**
   * The sentence as data: `id`, its English template, and its `args`.
   */
  detail: {
    [k: string]: unknown;
  };
  waited_for: string | null;
  waited_reason: string | null;
  changed: string[];
  passed: DecisionPassed[];
  passed_count: number;
  position: number | null;
  policy: string;
  order: string | null;
  share: number | null;
  rule: string | null;
  nodes: DecisionNode[];
  only: boolean;
  victims: DecisionVictim[];
  spared: string[];
}
/**
 * A job that was looked at before another one and did not start, by the type of its reason; it stands for all that ask for the same.
 *
 * Names are null where they are not the asker's to know. Of a replica of an app `job` is the app's name.
 */
export interface DecisionPassed {
  job: string | null;
  user: string | null;
  tenant: string | null;
  reason: string;
  replica: number | null;
}
/**
 * A node that was looked at for a job: ranks it got there or would have got, what it has free after that, its score.
 *
 * Scores are compared from the left, the smallest is best; what they are made of depends on the placement rule.
 */
export interface DecisionNode {
  node: string;
  ranks: number;
  chosen: boolean;
  free_after: string;
  score: number[];
}
/**
 * A running job that could have been stopped for another: what that loses, and why it was chosen or not.
 *
 * `lost_work` is the most that may be lost, less what it saves when it is asked to end; in `lost_unit`: gpu-seconds, or
 * core-seconds where it has no gpu; empty where an older hub did not write it down. `gives` are the workers that it gives up instead of all,
 * 0 where it is stopped or left alone. `right` is that by which a chosen one makes room: reclaim, priority, in-one-piece or extra
 * (workers beyond the least of an elastic job). Names are null where they are not the
 * asker's to know; of those that share with the asker's tenant the tenant is named. Of a replica of an app `job` is the app's name, and
 * `replica` which one it is.
 */
export interface DecisionVictim {
  job: string | null;
  user: string | null;
  tenant: string | null;
  priority: number;
  lost_work: number;
  over_nominal: boolean;
  chosen: boolean;
  right: string | null;
  why: string;
  gives: number;
  lost_unit: string;
  replica: number | null;
}
/**
 * An entry of a directory. `size` is a file's, in bytes; links are shown and never followed.
 *
 * `other` is what cannot be fetched: a device, a pipe, a socket, or what has no name that is text.
 */
export interface FileEntry {
  name: string;
  kind: "directory" | "file" | "link" | "other";
  size: number;
  modified: string;
}
/**
 * Some runs of those that were found, `total` in all.
 *
 * `params` and `metrics` are the names that these have, the most frequent first; `next` is the cursor of the following page,
 * null on the last.
 */
export interface RunPage {
  runs: ListedRun[];
  total: number;
  params: string[];
  metrics: string[];
  next: string | null;
}
/**
 * A run of a job as tables show it.
 *
 * `reason` is why it ended as it did, where its job says so: `StoppedEarly` of a trial that its sweep stopped, or a failure's cause;
 * null until it has ended. `metrics` are of the lowest rank that reports them. `duration_s` are the seconds that all its attempts ran, null before it
 * ran; `core_hours` are these times the cores that its ranks held of the quota, as a sweep counts its trials. `cpu_peak` (cores) and `ram_peak` (MiB) are the most of one rank. `commit`, `dirty` and `environment` (a sha256 of its
 * lines) are what its client said. `sweep` and `trial` name the sweep whose trial it is, null of one that is none.
 */
export interface ListedRun {
  uid: string;
  name: string;
  run: number;
  user: string;
  tenant: string;
  state: "creating" | "deleting" | "error" | "finished" | "running";
  phase:
    | "queued"
    | "admitted"
    | "starting"
    | "running"
    | "suspending"
    | "suspended"
    | "preempting"
    | "resizing"
    | "finishing"
    | "finished"
    | "failed"
    | "cancelling"
    | "cancelled"
    | "deleting";
  reason: string | null;
  progress: number;
  params: {
    [k: string]: boolean | number | string;
  };
  metrics: {
    [k: string]: RunMetric;
  };
  duration_s: number | null;
  core_hours: number | null;
  cpu_peak: number | null;
  ram_peak: number | null;
  tags: string[];
  note: string;
  sweep: string | null;
  trial: number | null;
  commit: string | null;
  dirty: boolean | null;
  environment: string | null;
  submitted_at: string;
  started_at: string | null;
  finished_at: string | null;
}
/**
 * A metric of a run: its last value, its lowest and highest, and which of these is best, by its name; null: none was finite.
 */
export interface RunMetric {
  last: number | null;
  best: number | null;
  low: number | null;
  high: number | null;
}
/**
 * What is to be done to runs: cancel them, delete those that ended, or give and take tags.
 */
export interface RunsAct {
  act: "cancel" | "delete" | "tag" | "untag";
  /**
   * @minItems 1
   * @maxItems 1000
   */
  runs: string[];
  /**
   * @maxItems 20
   */
  tags?: string[];
}
/**
 * What became of one of them: `reason` and `msg` say why nothing did, both empty where it was done.
 */
export interface RunOutcome {
  run: string;
  reason: string;
  msg: string;
}
/**
 * Curves of a run. `reported` are the points that they were made of, `more` says that there are metrics besides.
 */
export interface RunCurves {
  run: ListedRun;
  reported: number;
  curves: Curve[];
  more: boolean;
}
/**
 * A metric of a run, of one rank, thinned out: of points side by side the lowest and the highest are kept.
 *
 * `x` by which it was asked for; `y` has null where the value was not finite.
 */
export interface Curve {
  metric: string;
  rank: number;
  x: number[];
  y: (number | null)[];
}
/**
 * All that is kept of a run.
 *
 * `program` is its text, of a script as it was when it was submitted, null where that was not kept. `environment` are lines
 * NAME==VERSION as its client told them. `env_name` is the environment that its Python was of, `env_lock` the SHA-256 of that one's lock, or
 * the digest that its image was named with; `env_image` is that image.
 */
export interface RunDetail {
  run: ListedRun;
  entry: string | null;
  workdir: string | null;
  program: string | null;
  runtime: string;
  workers: number | string;
  cpu: number;
  gpu: number;
  ram: number;
  args: string[];
  env: {
    [k: string]: string;
  };
  environment: string | null;
  env_name: string | null;
  env_lock: string | null;
  env_image: string | null;
  data: RunData[];
}
/**
 * A dataset that a run read: `uid` is that very one, `size` its bytes when the run was submitted.
 *
 * `digest` is what its files were when the run first started, null before, and where they are too many: a SHA-256 of their paths,
 * lengths and checksums. Of `files` so many are `checked`, with a checksum; of the others the time of their last writing went in.
 */
export interface RunData {
  user: string;
  name: string;
  uid: string;
  size: number;
  digest: string | null;
  files: number;
  checked: number;
}
/**
 * What people write of a run; what is left out stays.
 */
export interface RunUpdate {
  note?: string;
  /**
   * @maxItems 20
   */
  tags?: string[];
}
/**
 * A sweep: one program, run with many parameters, each a trial; all else is what a job says, and of each trial.
 *
 * `grid` has values to be tried, each with each. `search` has spaces to choose from: `uniform(0, 1)`, `loguniform(1e-5, 1)`, `int(1, 8)`,
 * `logint(1, 1024)`, `choice(a, b, c)`; then a budget is needed: `trials`, `core_hours`, `deadline`, or several of them. `array` is
 * `0-31%8` instead: a trial for each index, at most 8 at a time. The program finds what was chosen in `mlp.params`. `metric` is what it
 * reports by `mlp.report`, and `goal` which values are better; `stop` ends trials that are worse than others at the same step, from the
 * value number `warmup` on. At most `parallel` trials run at a time, otherwise as many as there is room for.
 */
export interface SweepCreate {
  runtime?: string | null;
  workers?: number | string;
  ps?: number;
  cpu?: number;
  gpu?: number;
  gpu_kind?: string | null;
  ram?: number;
  tenant?: string | null;
  /**
   * a-z, 0-9 and -, 1 to 50 characters
   */
  priority?: string;
  time_limit?: number | null;
  retries?: number;
  checkpoint_every?: number | null;
  topology?: string | null;
  tensorboard?: "off" | "on";
  /**
   * datasets that its ranks see, read-only: NAME or USER/NAME, with :PATH behind it to see it there too; USER/NAME/PART has a part of one that is read through fetched
   *
   * @maxItems 32
   */
  data?: string[];
  env_name?: string | null;
  /**
   * letters, digits, -, _ and ., not beginning with - or ., 1 to 43 characters
   */
  name: string;
  entry?: string | null;
  code?: string | null;
  workdir?: string | null;
  /**
   * @maxItems 1000
   */
  args?: string[];
  env?: {
    [k: string]: string;
  };
  /**
   * parameters of the program, which finds them in `mlp.params`
   */
  params?: {
    [k: string]: boolean | number | string;
  };
  replace?: boolean;
  provenance?: Provenance | null;
  grid?: {
    [k: string]: (boolean | number | string)[];
  };
  search?: {
    [k: string]: string;
  };
  array?: string | null;
  trials?: number | null;
  metric?: string | null;
  goal?: ("max" | "min") | null;
  stop?: "asha" | "median" | "none";
  warmup?: number;
  sampler?: "random" | "tpe";
  seed?: number;
  parallel?: number | null;
  core_hours?: number | null;
  deadline?: number | null;
}
/**
 * A sweep with what became of it. `best` is the best trial so far, null before any has a value.
 *
 * `trials` are those that were made; a list of sweeps leaves them out. `budget_trials`, `budget_core_hours` and `deadline` are its
 * budget, `core_hours` what it has taken. `array` says that it is one, whose parameter is `index`.
 */
export interface Sweep {
  name: string;
  run: number;
  user: string;
  tenant: string;
  uid: string;
  state: "cancelled" | "deleting" | "ending" | "failed" | "finished" | "running";
  message: string;
  /**
   * The sentence as data: `id`, its English template, and its `args`.
   */
  detail: {
    [k: string]: unknown;
  };
  runtime: string;
  entry: string | null;
  code: string | null;
  args: string[];
  priority: string;
  workers: number | string;
  cpu: number;
  gpu: number;
  ram: number;
  grid: {
    [k: string]: (boolean | number | string)[];
  };
  search: {
    [k: string]: string;
  };
  array: boolean;
  metric: string | null;
  goal: ("max" | "min") | null;
  stop: "asha" | "median" | "none";
  warmup: number;
  sampler: "random" | "tpe";
  parallel: number | null;
  budget_trials: number;
  budget_core_hours: number | null;
  deadline: string | null;
  core_hours: number;
  counts: SweepCounts;
  best: SweepTrial | null;
  trials: SweepTrial[];
  submitted_at: string;
  ended_at: string | null;
}
/**
 * How many of its trials are so; those that go on wait or run.
 */
export interface SweepCounts {
  waiting: number;
  running: number;
  finished: number;
  stopped: number;
  failed: number;
  cancelled: number;
  left: number;
}
/**
 * A trial. `job` is what its job is called, null while it is not there; `value` is what it reported last.
 *
 * `steps` counts the values that it reported, `core_hours` are what it took, so far while it goes on.
 */
export interface SweepTrial {
  number: number;
  params: {
    [k: string]: boolean | number | string;
  };
  state: "cancelled" | "failed" | "finished" | "planned" | "running" | "stopped";
  job: string | null;
  phase: string | null;
  value: number | null;
  steps: number;
  core_hours: number;
  ended_at: string | null;
  message: string;
  /**
   * The sentence as data: `id`, its English template, and its `args`.
   */
  detail: {
    [k: string]: unknown;
  };
}
/**
 * What a sweep would be and take: `at_a_time` trials at once as things are now.
 *
 * `core_hours` and `expected_end` are null where nobody can know; `because` says why, or where they come from.
 */
export interface SweepPreview {
  trials: number;
  at_a_time: number;
  core_hours: number | null;
  core_hours_most: number | null;
  trial_s: number | null;
  expected_start: string | null;
  expected_end: string | null;
  because: string;
  tenant: string;
}
/**
 * Values of the metric of one trial, as [step, value]; of many every n-th.
 */
export interface SweepCurve {
  trial: number;
  points: number[][];
}
/**
 * So much more of its budget: trials, core-hours, or seconds from now; a sweep that has ended goes on.
 */
export interface SweepExtend {
  trials?: number | null;
  core_hours?: number | null;
  deadline?: number | null;
}
/**
 * One point as delivered on the `job_metrics` WebSocket; further metrics are in `values`.
 */
export interface JobMetrics {
  user: string;
  name: string;
  seq: number;
  rank: number;
  time: number;
  epoch: number | null;
  step: number | null;
  accuracy: number | null;
  loss: number | null;
  progress: number | null;
  values: {
    [k: string]: number;
  };
}
/**
 * Consecutive points of one source (one reporting process).
 */
export interface MetricBatch {
  source: string;
  /**
   * @maxItems 20000
   */
  points: MetricPoint[];
}
/**
 * One report of one process: `n` is its number within its source, from 1 on, without gaps.
 *
 * `v` holds the numeric values; epoch, step, loss, accuracy and progress have their known meanings.
 */
export interface MetricPoint {
  n: number;
  t: number;
  v: {
    [k: string]: number | null;
  };
}
/**
 * How far the source's points are stored; send on from the next one.
 */
export interface MetricAck {
  last: number;
}
/**
 * The job as it is now.
 */
export interface JobFrame {
  type: "job";
  job: Job;
}
/**
 * Points, in order.
 */
export interface MetricsFrame {
  type: "metrics";
  points: Point[];
}
/**
 * A stored report of one rank, as its process made it; null stands for what is no finite number.
 */
export interface Point {
  seq: number;
  time: number;
  rank: number;
  step: number | null;
  values: {
    [k: string]: number | null;
  };
}
/**
 * Steps of the timeline, in order.
 */
export interface EventsFrame {
  type: "events";
  events: Event[];
}
/**
 * The job's newest attempts, all of them anew, in order.
 */
export interface AttemptsFrame {
  type: "attempts";
  attempts: JobAttempt[];
}
/**
 * Lines of one rank. `offset` is the cursor behind them.
 *
 * `dropped` bytes are gone before them, and `dropped_lines` lines; null where those were not counted. A line of the stream
 * `mlp` stands where they are missing.
 */
export interface LogFrame {
  type: "log";
  rank: number;
  lines: LogText[];
  offset: number;
  dropped: number;
  dropped_lines: number | null;
}
/**
 * A line of the frame's rank. One with `partial` has no end yet: the next line of its stream goes on with it.
 */
export interface LogText {
  time: string;
  stream: string;
  text: string;
  partial?: boolean;
}
/**
 * Why the job waits, null where it does not.
 */
export interface WhyFrame {
  type: "why";
  why: Why | null;
}
/**
 * All that was there is sent; what follows is new.
 */
export interface SyncedFrame {
  type: "synced";
}
/**
 * The job has ended, and all of it is sent.
 */
export interface EndFrame {
  type: "end";
}
/**
 * One line of a rank's output.
 *
 * A `partial` one has no end yet, and the next line of its rank and stream goes on with it, as progress bars do. What begins
 * with `\r\x1b[J` takes the place of what the line had until then; `\x1b[E` stands between its rows. The stream `mlp` tells
 * what is missing of the log, in its place.
 */
export interface LogLine {
  rank: number;
  time: string;
  stream: string;
  text: string;
  partial: boolean;
}
/**
 * The queue is worth fetching.
 */
export interface QueueHint {
  type: "changed";
}
/**
 * An environment of a tenant.
 *
 * `packages` are those of its lock with their versions, none before it is resolved; `lock` is the SHA-256 of that. `size` are the bytes
 * that its files take of the tenant's storage; environments of one lock have the same files, which `shared_with` others, and are
 * charged once. `jobs` have not ended and use it; `servers` are the notebook servers that run and were started with it. `message` says why
 * it is in error.
 *
 * One of an `image` is ready at once, has no packages that are known here and no size; its `lock` is the digest that it was named with,
 * empty where it was named by a tag.
 */
export interface EnvironmentInfo {
  name: string;
  tenant: string;
  user: string;
  state: "creating" | "deleting" | "error" | "ready";
  size: number;
  packages: {
    [k: string]: string;
  };
  lock: string;
  shared_with: string[];
  jobs: string[];
  servers: string[];
  message: string;
  created_at: string;
  image: string | null;
}
/**
 * An environment to make: its name, and one of two.
 *
 * `requirements`, as a requirements.txt has them, where jobs run on the hub's machine; an `image` where they run in containers.
 */
export interface EnvironmentCreate {
  /**
   * an environment of the job's tenant: packages that its Python has besides the platform's, or the image of its pods
   */
  name: string;
  requirements?: string | null;
  image?: string | null;
}
/**
 * An environment with the requirements it was asked for with, its whole lock, and the last that was written while it was made.
 */
export interface EnvironmentDetail {
  environment: EnvironmentInfo;
  requirements: string;
  lock: string;
  log: string;
}
/**
 * A version of a model to register: `src` says which file, or which directory with all below, becomes it.
 *
 * With `any_files` it is kept whatever it is; else files that are no model of a known format are an error.
 */
export interface ModelCreate {
  /**
   * a-z, 0-9 and -, 1 to 50 characters
   */
  name: string;
  /**
   * jobs/JOB/PATH or jobs/JOB@RUN/PATH of a job's files, JOB for its checkpoints, home/PATH of the home; also as /mlp/jobs/USER/JOB/PATH, /mlp/datasets/USER/.home/PATH
   */
  src: string;
  tenant?: string | null;
  any_files?: boolean;
}
/**
 * A version of a model. In paths `NAME` means the latest, `NAME@VERSION` a certain one.
 *
 * `size` are bytes: what is kept for it while it is created, then exactly what its files have. `format` is told by names and
 * headers, nothing of it is loaded; who loads one that is `pickled` runs code that is in it. `facts` are what its header says.
 */
export interface Model {
  name: string;
  version: number;
  user: string;
  tenant: string;
  uid: string;
  size: number;
  files: number;
  src: string;
  state: "creating" | "deleting" | "error" | "ready";
  stage: "archived" | "none" | "production" | "staging";
  format: string;
  main: string;
  pickled: boolean;
  facts: {
    [k: string]: string;
  };
  message: string;
  lineage: Lineage;
  created_at: string;
}
/**
 * Where a model comes from, as it was when it was registered. Without a job it comes from its owner's home.
 *
 * `code_sha256` is of the program's text, null where it is a file of the home, `entry`. `metrics` are the last of each.
 */
export interface Lineage {
  job: string | null;
  run: number | null;
  job_uid: string | null;
  runtime: string | null;
  entry: string | null;
  code_sha256: string | null;
  args: string[];
  env: {
    [k: string]: string;
  };
  workers: number | string | null;
  data: string[];
  metrics: {
    [k: string]: number;
  };
  taken_at: string;
}
/**
 * A model among the files of a job, as names and headers tell it; `src` is what registers it.
 */
export interface FoundModel {
  src: string;
  path: string;
  format: string;
  pickled: boolean;
}
/**
 * How far a version is used from now on. Of one version of a model it is `production`: the one before is archived.
 */
export interface ModelStageChange {
  stage: "archived" | "none" | "production" | "staging";
}
/**
 * An app to deploy: the platform serves the model by the Open Inference Protocol, or a `command` runs, which sees the model at /model.
 *
 * `command_port` is where the command listens; PORT tells it. cpu, gpu and ram are per replica. Of `replicas` MIN:MAX so many run
 * that each has `concurrency` requests at once; fewer once so many were not needed for `idle` seconds, and with MIN of 0 none while nobody asks. With `replace` an app of this name changes to what is said here: replicas of the new one answer
 * before those of the old one go. `env_name` is an environment of the tenant, whose packages the server or the command has. `access` says who may ask it besides its owner and its keys: members of its tenant, or everybody here.
 */
export interface AppCreate {
  /**
   * a-z, 0-9 and -, 1 to 50 characters
   */
  name: string;
  /**
   * NAME, which means the latest version, or NAME@VERSION; empty where a command needs none
   */
  model_name: string;
  tenant?: string | null;
  cpu?: number;
  gpu?: number;
  gpu_kind?: string | null;
  ram?: number;
  replicas?: number | string;
  idle?: number;
  /**
   * requests at once that one replica is for
   */
  concurrency?: number;
  command?: string | null;
  command_port?: number;
  runtime?: string | null;
  env_name?: string | null;
  /**
   * a-z, 0-9 and -, 1 to 50 characters
   */
  priority?: string;
  access?: "hub" | "private" | "tenant";
  env?: {
    [k: string]: string;
  };
  replace?: boolean;
}
/**
 * An app. `state` is told by `phase`, which says more. `port` is its own as long as it is there; `url` is where it answers, below the hub's address.
 *
 * `address` is the same with the hub's public address, as a browser opens it.
 *
 * `model_name` is the model with the version that is served, empty where a command needs none. `wanted` are the replicas that are to
 * run now, `ready` those that answer, `under_way` the requests that they had at once lately, null where nobody asks. `message` says why it waits or fails, `tail` has the last lines of the replica that failed last.
 */
export interface Application {
  name: string;
  user: string;
  tenant: string;
  gpu: number;
  cpu: number;
  model_name: string;
  port: number;
  url: string;
  address: string;
  state: "creating" | "deleting" | "error" | "ready";
  phase: "deleting" | "error" | "running" | "starting" | "waiting";
  uid: string;
  ram: number;
  gpu_kind: string | null;
  replicas: number | string;
  idle: number;
  concurrency: number;
  under_way: number | null;
  wanted: number;
  ready: number;
  command: string | null;
  command_port: number;
  runtime: string;
  env_name: string | null;
  priority: string;
  access: "hub" | "private" | "tenant";
  generation: number;
  failures: number;
  message: string;
  /**
   * The sentence as data: `id`, its English template, and its `args`.
   */
  detail: {
    [k: string]: unknown;
  };
  tail: string;
  running: AppReplica[];
  created_at: string;
}
/**
 * A replica: `phase` is that of its job, `ready` whether it answers. `message` says why it waits, or how it is.
 */
export interface AppReplica {
  replica: number;
  phase:
    | "queued"
    | "admitted"
    | "starting"
    | "running"
    | "suspending"
    | "suspended"
    | "preempting"
    | "resizing"
    | "finishing"
    | "finished"
    | "failed"
    | "cancelling"
    | "cancelled"
    | "deleting";
  ready: boolean;
  generation: number;
  node: string | null;
  reason: string | null;
  message: string;
  /**
   * The sentence as data: `id`, its English template, and its `args`.
   */
  detail: {
    [k: string]: unknown;
  };
  position: number | null;
  expected_start: string | null;
  started_at: string | null;
}
/**
 * An app as who may open it is shown it: where it answers and how it is, and nothing of what it runs with.
 *
 * `address` is `url` with the hub's public address. `serves` says what answers there: a `model` by the Open Inference Protocol, as `model_name`, or a `command` in its own way.
 */
export interface SharedApp {
  name: string;
  user: string;
  tenant: string;
  uid: string;
  url: string;
  address: string;
  state: "creating" | "deleting" | "error" | "ready";
  phase: "deleting" | "error" | "running" | "starting" | "waiting";
  access: "hub" | "private" | "tenant";
  serves: "command" | "model";
  model_name: string;
  wanted: number;
  ready: number;
  message: string;
  /**
   * The sentence as data: `id`, its English template, and its `args`.
   */
  detail: {
    [k: string]: unknown;
  };
  created_at: string;
}
/**
 * How many replicas there are to be from now on.
 */
export interface AppScale {
  replicas: number | string;
  idle?: number;
  /**
   * requests at once that one replica is for
   */
  concurrency?: number;
}
/**
 * A dataset to upload: `size` bytes are kept for it of its tenant's `rom` until it is ready.
 *
 * Where it has a `source` the platform copies what is there; its size is then found by looking.
 */
export interface DatasetCreate {
  /**
   * a-z, 0-9, - and ., beginning with a letter, 1 to 50 characters
   */
  name: string;
  size: number;
  tenant?: string | null;
  user?: string | null;
  source?: DatasetSource | null;
}
/**
 * Objects that a dataset is made of. `url`: s3://BUCKET/PREFIX. `endpoint`: where, as https://HOST:PORT; none: at Amazon's.
 *
 * `secret`: name of the secret of the user's own, or else of the tenant's, that opens it; none: it is open to everybody.
 * `mode`: `copy` has the platform copy all of it; with `read-through` nothing is copied: who reads a file gets it from there, and
 * a job what it names of it, which counts in the tenant's `rom` until no job needs it.
 */
export interface DatasetSource {
  url: string;
  endpoint: string | null;
  region: string | null;
  secret: string | null;
  mode: "copy" | "read-through";
}
/**
 * A dataset. `size`: bytes that it takes of its tenant's `rom`; what its files take is `used`, which becomes the same.
 *
 * `path` is where its files are, below the platform's address. Its machine of states is on the page of phases.
 */
export interface Dataset {
  name: string;
  user: string;
  tenant: string;
  size: number;
  state: "creating" | "deleting" | "error" | "ready";
  progress: number;
  used: number;
  path: string;
  message: string;
  made_at: string;
  source: DatasetSource | null;
}
/**
 * How far the upload of a dataset is, by the word of who uploads it.
 */
export interface DatasetHeartbeat {
  state: "creating" | "error" | "ready";
  progress: number;
}
/**
 * What a token may do with a dataset's files: told to the part of the platform that holds them.
 *
 * `owner` is the system uid whose files they are; null: the platform's own. `through`: they are those of its source.
 */
export interface DatasetAccess {
  uid: string;
  user: string;
  name: string;
  tenant: string;
  state: "creating" | "deleting" | "error" | "ready";
  owner: number | null;
  through: boolean;
}
/**
 * So many bytes are going to be written to what has this uid.
 */
export interface StorageTake {
  uid: string;
  size: number;
  once?: string | null;
}
/**
 * Writing is over: of what was taken so much is not needed any more, and the files have grown by so much, or shrunk.
 *
 * `gone` are bytes that were removed as it seems: the service has a look, since who owns files says how long they are. `took` is
 * the key of a take that nobody answered: what it took is given back, and it takes nothing where it comes later.
 */
export interface StorageGive {
  uid: string;
  granted: number;
  grown: number;
  once?: string | null;
  gone?: number;
  took?: string | null;
}
/**
 * What is read of the source of the dataset with this uid: the object at a path of it, or a list of what has that in front.
 *
 * A list is one page of at most `limit`, behind `after`; `flat`: without what lies deeper than the next `/`.
 */
export interface SourceOpen {
  uid: string;
  path: string;
  listed?: boolean;
  flat?: boolean;
  after?: string;
  limit?: number;
}
/**
 * Where that is to be had for a few minutes, without a credential; what it was asked for, and no more.
 */
export interface SourceAddress {
  url: string;
  host: string;
  bucket: string;
  prefix: string;
  secret: boolean;
}
/**
 * A secret, as far as anybody is told: its name, the names of what is in it, and who set it when.
 */
export interface Secret {
  /**
   * a-z, 0-9 and -, 1 to 50 characters
   */
  name: string;
  keys: string[];
  tenant: string | null;
  user: string | null;
  changed_at: string;
  changed_by: string;
}
/**
 * What is to be in a secret, by name: of an object store `access_key_id` and `secret_access_key`, perhaps `session_token`.
 */
export interface SecretSet {
  keys: {
    [k: string]: string;
  };
}
/**
 * What somebody chose, and what may be chosen: whether this hub sends mail, and which services' addresses it takes.
 */
export interface Notifications {
  browser: ("answered" | "asked" | "failed" | "finished" | "late" | "preempted" | "started")[];
  quiet: QuietTime | null;
  timezone: string;
  channels: NoticeChannel[];
  mail: boolean;
  services: string[];
}
/**
 * Time of each day in which nothing is sent; past midnight where `until` is before `begin`.
 */
export interface QuietTime {
  begin: string;
  until: string;
}
/**
 * A way to somebody, as far as it is told: `shown` is what of its address is no secret. `trouble` says why it failed last.
 */
export interface NoticeChannel {
  /**
   * a-z, 0-9 and -, 1 to 50 characters
   */
  name: string;
  kind: "mail" | "service" | "webhook";
  shown: string;
  events: ("answered" | "asked" | "failed" | "finished" | "late" | "preempted" | "started")[];
  told_at: string | null;
  trouble: string | null;
}
/**
 * All that somebody chooses; channels that are left out are removed.
 */
export interface NotificationsSet {
  /**
   * @maxItems 7
   */
  browser?: ("answered" | "asked" | "failed" | "finished" | "late" | "preempted" | "started")[];
  quiet?: QuietTime | null;
  timezone?: string;
  /**
   * @maxItems 10
   */
  channels?: ChannelSet[];
}
/**
 * A way to somebody. `address` is `mailto:ann@example.org`, `https://...`, or a service's; left out: what it was.
 */
export interface ChannelSet {
  /**
   * a-z, 0-9 and -, 1 to 50 characters
   */
  name: string;
  /**
   * @maxItems 7
   */
  events: ("answered" | "asked" | "failed" | "finished" | "late" | "preempted" | "started")[];
  address?: string | null;
}
/**
 * Which channel is to be tried.
 */
export interface ChannelTest {
  /**
   * a-z, 0-9 and -, 1 to 50 characters
   */
  channel: string;
}
/**
 * How it went; `trouble` says why nothing was taken.
 */
export interface ChannelTested {
  taken: boolean;
  trouble: string | null;
}
/**
 * Something to be told of a job, or of a request of `tenant`, where `job` is empty. `id` grows with time; `quiet`: somebody does not want to be told of it now.
 */
export interface Notice {
  id: number;
  event: "answered" | "asked" | "failed" | "finished" | "late" | "preempted" | "started";
  job: string;
  run: number;
  tenant: string;
  at: string;
  title: string;
  text: string;
  /**
   * The sentence as data: `id`, its English template, and its `args`.
   */
  detail: {
    [k: string]: unknown;
  };
  quiet: boolean;
}
/**
 * Something that is told; `tenant` is empty where it is for everybody. It is plain text: whoever shows it shows it as such.
 */
export interface Announcement {
  id: number;
  tenant: string;
  level: "critical" | "info" | "warning";
  text: string;
  begin: string;
  until: string;
  made_by: string;
  made_at: string;
}
/**
 * A new announcement, in plain text of one line: shown from `begin` (left out, or passed: at once) to before `until`.
 */
export interface AnnouncementCreate {
  text: string;
  until: string;
  begin?: string | null;
  level?: "critical" | "info" | "warning";
}
/**
 * A key of an app. `key` is there in the answer that made it, and never again; `used_at` is exact to a minute or so.
 */
export interface AppKeyShown {
  name: string;
  made_by: string;
  made_at: string;
  used_at: string | null;
  key: string | null;
}
/**
 * A key of an app to make, by a name that says who uses it.
 */
export interface AppKeyCreate {
  /**
   * a-z, 0-9 and -, 1 to 50 characters
   */
  name: string;
}
/**
 * Who may open an app with an account of the hub, besides its owner: nobody, members of its tenant, or everybody.
 */
export interface AppAccessSet {
  access: "hub" | "private" | "tenant";
}
/**
 * Who may open an app with an account of the hub.
 */
export interface AppAccessNow {
  access: "hub" | "private" | "tenant";
}
/**
 * What was asked of an app, or of all of a tenant's, since it was first asked.
 *
 * `latency` counts answers by the first of `bounds_ms` within which they began, and in its last place slower ones; `p50_ms` and
 * `p99_ms` are such bounds, null where nothing was asked or it took longer than all. `minutes` are of the last hour, those without
 * a request left out.
 */
export interface AppUsage {
  since: string;
  requests: number;
  errors: number;
  bytes_in: number;
  bytes_out: number;
  open: number;
  last: string | null;
  bounds_ms: number[];
  latency: number[];
  p50_ms: number | null;
  p99_ms: number | null;
  minutes: AppMinute[];
}
/**
 * What was asked in the minute that begins at `time`; `errors` are answers of 500 and above.
 */
export interface AppMinute {
  time: string;
  requests: number;
  errors: number;
  bytes_in: number;
  bytes_out: number;
}
/**
 * A request for an app, as the gateway asks about it: by user and app or by its host's label, with what it brought.
 *
 * `again`: it was let in, is open still, and is asked about once more, which is no guess whatever else comes from its address.
 */
export interface AppAdmit {
  kind: "cookie" | "key" | "token";
  secret: string;
  user?: string;
  app?: string;
  label?: string;
  address?: string;
  again?: boolean;
}
/**
 * What the gateway does with a request. But for `may` all else is empty: what is not there and what is not open are one.
 */
export interface AppAdmission {
  verdict: "may" | "often" | "refused" | "unknown";
  uid: string;
  user: string;
  app: string;
  tenant: string;
  visitor: string;
  key: string;
  key_name: string;
  state: string;
  reason: string | null;
  wakes: boolean;
  replicas: string[];
}
/**
 * A code that a browser brought to an app's own origin; `way` is the digest of what that browser had when it asked for it.
 */
export interface AppEnter {
  label: string;
  code: string;
  way: string;
}
/**
 * The cookie of that browser for this app, and for how many seconds; empty where the code is not good.
 */
export interface AppEntered {
  cookie: string;
  lasts_s: number;
}
/**
 * What was asked of apps, as the gateway tells it; told again it counts once.
 */
export interface AppsUsed {
  /**
   * @maxItems 100
   */
  counted: CountedUse[];
}
/**
 * What a process of the gateway counted of an app, by its uid, or of a tenant's apps, since it began to (`run`).
 *
 * `under_way` is how many requests were, on average, since it was told last; `minutes` are those that have changed.
 */
export interface CountedUse {
  kind: "app" | "tenant";
  name: string;
  run: string;
  since: number;
  last: number;
  under_way: number;
  requests: number;
  errors: number;
  bytes_in: number;
  bytes_out: number;
  /**
   * @maxItems 32
   */
  bounds_ms: number[];
  /**
   * @maxItems 33
   */
  latency: number[];
  /**
   * @maxItems 60
   */
  minutes: CountedMinute[];
}
/**
 * What the gateway counted in one minute, by its number since the epoch.
 */
export interface CountedMinute {
  minute: number;
  requests: number;
  errors: number;
  bytes_in: number;
  bytes_out: number;
}
/**
 * How all stands. `teams` are those that hold most and those for which most waits, of `teams_all`; `longest` waits longest.
 *
 * `nodes` counts those that are there, `nodes_up` those that answer, `nodes_open` those that take new work; `troubles` are the first
 * of the others. `apps_failing` counts the apps in error, `app_troubles` are the first of them. `running` counts jobs, no replicas of
 * apps; `waiting` is all that waits. `teams` and apps in error may be as old as `at`; all else is of this moment.
 */
export interface Overview {
  at: string;
  teams: TeamHolds[];
  teams_all: number;
  running: number;
  waiting: number;
  suspended: number;
  reasons: WaitingFor[];
  longest: QueueEntry[];
  problems: OverviewProblem[];
  nodes: number;
  nodes_up: number;
  nodes_open: number;
  troubles: NodeTrouble[];
  servers: number;
  servers_waiting: number;
  apps: number;
  replicas: number;
  apps_failing: number;
  app_troubles: AppTrouble[];
}
/**
 * What a tenant holds of its quota (null: what the nodes have). The fields mean what those of a `Tenant` mean.
 */
export interface TeamHolds {
  name: string;
  cpu: number | null;
  gpu: number | null;
  ram: number | null;
  rom: number | null;
  cpu_inuse: number;
  gpu_inuse: number;
  ram_inuse: number;
  rom_inuse: number;
  borrowed: {
    [k: string]: number;
  };
  lent: {
    [k: string]: number;
  };
  free: {
    [k: string]: number;
  };
  over: {
    [k: string]: number;
  };
  running: number;
  waiting: number;
}
/**
 * How many wait for one reason; null: no cycle has looked at them yet. `message` is what is said of the one that waits longest.
 */
export interface WaitingFor {
  reason: string | null;
  count: number;
  message: string;
}
/**
 * A waiting or running job in the cluster's queue, or a notebook server (`kind` server) that waits for its room.
 *
 * Of a replica of an app (`kind` app) `name` is the app's, and `replica` which one it is.
 * A server's `name` is that of a named one, empty of its user's own; it has no runs, and `facts` are behind its reason: those of
 * a job are told by `why`.
 * `expected_because` says what makes its expected start possible, or why none can be told; empty where nobody has looked yet.
 * `waiting_since`, `waited_s` and `ran_s` are as in a job.
 */
export interface QueueEntry {
  kind: string;
  user: string;
  name: string;
  run: number;
  tenant: string;
  phase:
    | "queued"
    | "admitted"
    | "starting"
    | "running"
    | "suspending"
    | "suspended"
    | "preempting"
    | "resizing"
    | "finishing"
    | "finished"
    | "failed"
    | "cancelling"
    | "cancelled"
    | "deleting";
  priority: string;
  position: number | null;
  reason: string | null;
  message: string;
  /**
   * The sentence as data: `id`, its English template, and its `args`.
   */
  detail: {
    [k: string]: unknown;
  };
  cpu: number;
  gpu: number;
  ram: number;
  submitted_at: string;
  waiting_since: string | null;
  waited_s: number;
  ran_s: number;
  started_at: string | null;
  expected_start: string | null;
  expected_because: string;
  put_first: boolean;
  facts: Fact[];
  replica: number | null;
}
/**
 * Something that does not work, as `/health` tells it.
 */
export interface OverviewProblem {
  component: string;
  reason: string;
  message: string;
}
/**
 * A node that takes nothing new, and why.
 */
export interface NodeTrouble {
  name: string;
  up: boolean;
  conditions: NodeCondition[];
}
/**
 * What is wrong with a node, and what is told of it.
 */
export interface NodeCondition {
  kind: "Absent" | "Cordoned" | "DiskPressure" | "Drained" | "MemoryPressure" | "NotReady" | "PIDPressure";
  message: string;
}
/**
 * An app that does not answer because its replicas end, and why.
 */
export interface AppTrouble {
  user: string;
  name: string;
  tenant: string;
  message: string;
}
/**
 * A node: what is there, what may be given out and what is in use.
 *
 * `up`: it answers. `schedulable`: it takes new ranks, of those who tolerate its `taints`; else `conditions` say why not.
 * What others than the hub hold there now (`cpu_others` and so on) is not part of what may be given out.
 */
export interface Node {
  name: string;
  up: boolean;
  schedulable: boolean;
  conditions: NodeCondition[];
  taints: Taint[];
  cpu: number;
  gpu: number;
  gpu_kind: string | null;
  ram: number;
  cpu_allocatable: number;
  ram_allocatable: number;
  cpu_inuse: number;
  gpu_inuse: number;
  ram_inuse: number;
  cpu_others: number;
  gpu_others: number;
  ram_others: number;
  labels: {
    [k: string]: string;
  };
  holders: Holding[];
}
/**
 * What keeps workloads off a node. With the key `tenant` and the effect `NoSchedule` it leaves the node to that tenant.
 */
export interface Taint {
  key: string;
  value: string;
  effect: "NoExecute" | "NoSchedule" | "PreferNoSchedule";
}
/**
 * How a node is drained, null while it is in service; what runs there; and how many `others` take new work.
 */
export interface NodeDrainPreview {
  node: string;
  drain: NodeDrained | null;
  others: number;
  stops: NodeUser[];
}
/**
 * That a node is out of service: why, by whom and since when, and whether what runs there is moved away.
 */
export interface NodeDrained {
  reason: string;
  actor: string;
  since: string;
  evict: boolean;
}
/**
 * Something that runs on a node, with `ranks` of its processes there `of` all.
 *
 * `checkpoint_every` (s) is how often a job said that it saves one; `ending`: it was asked to end already. The `name` of a
 * server is that of a named one, empty of its user's own.
 */
export interface NodeUser {
  kind: "app" | "job" | "server";
  user: string;
  name: string;
  tenant: string;
  ranks: number;
  of: number;
  checkpoint_every: number | null;
  ending: boolean;
}
/**
 * Why a node is taken out of service. With `evict` what runs there goes: jobs wait in the queue again, servers are stopped.
 */
export interface NodeDrainSet {
  reason: string;
  evict?: boolean;
}
/**
 * The policy in force, as the settings that begin with `scheduling_` have it; `meaning` says what it goes by.
 */
export interface Scheduling {
  policy: string;
  meaning: string;
  placement: string;
  backfill: boolean;
  preemption: boolean;
  half_life_s: number;
  min_run_s: number;
  restart_cost_s: number;
  aging_s: number;
}
/**
 * Try to hold (request) or to give back (release) an amount.
 *
 * `environment` is the `uid` of the one that a notebook server is started with, as `GET /users/{user}:spawn` has it.
 */
export interface ResourceRequestTry {
  id: string;
  applier: "am" | "dm" | "jm" | "mm" | "sp";
  request_type: "release" | "request";
  /**
   * a-z, 0-9 and -, 1 to 50 characters
   */
  tenant?: string;
  gpu?: number;
  cpu?: number;
  ram?: number;
  rom?: number;
  gpu_kind?: string | null;
  user?: string;
  holder?: string;
  node?: string | null;
  environment?: string | null;
}
/**
 * Which resource request to confirm or cancel.
 */
export interface ResourceRequestKey {
  id: string;
  applier: "am" | "dm" | "jm" | "mm" | "sp";
}
/**
 * A decision of the scheduler with the job that it is about.
 */
export interface JobDecision {
  user: string;
  job: string;
  run: number;
  tenant: string;
  decision: Decision;
}
/**
 * Either a scenario (the keys of a scenario file) or a what-if: `from` the present or history, with `changes`.
 */
export interface SimulateRequest {
  version?: number;
  policy?: {
    [k: string]: unknown;
  } | null;
  flavors?: unknown[] | null;
  nodes?: unknown[];
  tenants?: unknown[];
  priorities?: {
    [k: string]: unknown;
  } | null;
  jobs?: unknown[];
  events?: unknown[] | null;
  bookings?: unknown[] | null;
  until?: number | null;
  from?: "now" | WhatIfHistory;
  changes?: WhatIfChanges;
}
/**
 * Recorded history.
 */
export interface WhatIfHistory {
  history: WhatIfWindow;
}
/**
 * Jobs that were submitted from `since` on and before `until` (null: now).
 */
export interface WhatIfWindow {
  since: string;
  until?: string | null;
}
/**
 * What would be other: tenants by name, new tenants by name, nodes that come, go or are down, the policy.
 */
export interface WhatIfChanges {
  tenants?: {
    [k: string]: WhatIfTenant;
  };
  new_tenants?: {
    [k: string]: WhatIfTenant;
  };
  /**
   * @maxItems 100
   */
  new_nodes?: WhatIfNodes[];
  /**
   * @maxItems 10000
   */
  remove_nodes?: string[];
  /**
   * @maxItems 10000
   */
  nodes_down?: string[];
  policy?: WhatIfPolicy | null;
}
/**
 * What would be other about a tenant. What is left out stays; a quota that is null has no limit.
 */
export interface WhatIfTenant {
  cpu?: number | null;
  gpu?: number | null;
  ram?: number | null;
  rom?: number | null;
  gpu_kinds?: {
    [k: string]: number;
  };
  weight?: number;
  cohort?: string | null;
  parent?: string | null;
  borrowing_limit?: {
    [k: string]: number | null;
  } | null;
  lending_limit?: {
    [k: string]: number | null;
  } | null;
  reserved?: {
    [k: string]: number | null;
  } | null;
  queue_order?: "fair" | "fifo" | "maxmin" | "priority";
}
/**
 * Nodes that would come: `count` of them, named NAME-0 and so on where there is more than one.
 */
export interface WhatIfNodes {
  name: string;
  count?: number;
  cpu?: number;
  ram?: number;
  gpu?: number;
  gpu_kind?: string | null;
  labels?: {
    [k: string]: string;
  };
}
/**
 * How the hub would schedule. What is left out stays.
 */
export interface WhatIfPolicy {
  name?: "fair" | "fifo" | "finish" | "maxmin" | "priority";
  placement?: "bestfit" | "fgd" | "packing" | "random" | "spread";
  backfill?: boolean;
  preemption?: boolean;
  half_life_s?: number;
  min_run_s?: number;
  restart_cost_s?: number;
  aging_s?: number;
}
/**
 * What came out. `before` is as things are and `after` with the changes; a scenario has `after` only.
 *
 * `begin` is the instant that seconds count from. `remarks` tell what was assumed and what cannot be told. `lines` are those
 * of `after`, where asked for; `lines_left_out` of them were too many.
 */
export interface Simulated {
  begin: string | null;
  before: SimulatedRun | null;
  after: SimulatedRun;
  moves: SimulatedMoves | null;
  recorded: RecordedWaits | null;
  remarks: string[];
  lines:
    | {
        [k: string]: unknown;
      }[]
    | null;
  lines_left_out: number;
}
/**
 * One run in all. `utilization` is from 0 to 1 by dimension, `lost_work_s` worker-seconds done twice.
 *
 * `waits`: what jobs waited for, each counted once; the most first.
 */
export interface SimulatedRun {
  jobs: number;
  running: number;
  waits_of: number;
  waited_again_s: number;
  finished: number;
  refused: number;
  never_started: number;
  preemptions: number;
  avg_wait_s: number;
  p50_wait_s: number;
  p99_wait_s: number;
  avg_jct_s: number;
  ftf_avg: number;
  ftf_worst: number;
  makespan_s: number;
  utilization: {
    [k: string]: number;
  };
  lost_work_s: number;
  per_tenant: {
    [k: string]: SimulatedTenant;
  };
  waits: SimulatedWait[];
  gantt: string | null;
}
/**
 * One tenant's part: what it used in core and gpu hours, its share of all that was used, and its fair share by weight.
 */
export interface SimulatedTenant {
  jobs: number;
  running: number;
  waits_of: number;
  waited_again_s: number;
  finished: number;
  refused: number;
  never_started: number;
  preemptions: number;
  avg_wait_s: number;
  p50_wait_s: number;
  p99_wait_s: number;
  avg_jct_s: number;
  ftf_avg: number;
  ftf_worst: number;
  cpu_h: number;
  gpu_h: number;
  share: number;
  fair_share: number;
}
/**
 * What `jobs` of those that did not run when the run began waited for last before they started, by reason.
 *
 * `never` of them wait for it in vain. `message` has the numbers of one of them, `job` of `user`, which waits longest.
 */
export interface SimulatedWait {
  reason: string;
  jobs: number;
  never: number;
  job: string;
  user: string;
  message: string;
}
/**
 * How many jobs start earlier, later, as before, or in one of the runs only; `most` lists those that move most.
 */
export interface SimulatedMoves {
  earlier: number;
  later: number;
  unmoved: number;
  only_before: number;
  only_after: number;
  most: SimulatedMove[];
}
/**
 * A job whose start moves: seconds from the begin of the run, null where it does not start.
 *
 * `why`: what it waits for in the run in which it starts later, or never.
 */
export interface SimulatedMove {
  job: string;
  user: string;
  tenant: string;
  before_s: number | null;
  after_s: number | null;
  why: string | null;
}
/**
 * What jobs of a window really waited, each time that they were in the queue, to hold `before` against.
 */
export interface RecordedWaits {
  jobs: number;
  avg_wait_s: number;
  p50_wait_s: number;
  p99_wait_s: number;
}
