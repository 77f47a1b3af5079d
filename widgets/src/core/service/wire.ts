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
 * Row of the table below a reason: its meaning, its value, and the one that it is about.
 *
 * `label` is in the reader's words. `key` names the row for programs, with its `dimension` where it
 * has one. `number` is its value where that is a number, in the units of quotas and in seconds.
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
 * Caller of the session, with the data that a page needs first.
 *
 * `warnings` are for platform admins: settings that are less safe than they could be. `language` is
 * the chosen one, empty where none was chosen. `images`: jobs run in containers here, and environments
 * are images.
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
 * State of the platform: `ok`, `degraded` or `failing`.
 *
 * In the state `degraded` requests are served in spite of problems.
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
 * Belongings of a user that the person who closes the account decides on.
 *
 * Notebook servers, tokens and sessions end, and `apps` are deleted. `running` jobs finish or are
 * stopped. `waiting` jobs are put aside or stopped. `suspended` and `ended` jobs stay or are removed
 * with the files. The same is true of `datasets` and of `models` (versions of them), which take
 * `stored` bytes. `bytes` is the size of the home where it is known. `departure` is null unless the
 * account was closed after its last admission.
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
 * Choices for a user who leaves, and the progress: `closing`, `ending`, `removing`, `left`.
 *
 * `stopped`, `suspended` and `removed` are the numbers of jobs that this was done to so far.
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
 * New password for an administrator to give to the user; `password` is set where it was generated.
 */
export interface PasswordSet {
  username: string;
  password: string | null;
}
/**
 * Administrator flag of a user of the platform.
 */
export interface AdminRight {
  admin: boolean;
}
/**
 * Preferences of a user.
 *
 * `language` is the language of all texts for the user. Empty means the language of the browser or
 * terminal.
 */
export interface Preferences {
  language: "" | "en" | "zh-CN";
}
/**
 * User data for the spawner: `GET /users/{user}:spawn`, with the ledger's scope only.
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
 * Room in a tenant's quota: cpu in cores, ram in MiB, gpu in devices; null: the nodes' capacity.
 *
 * `gpu_kinds` are the kinds that nodes have and the tenant may use. `cpu_borrow` and `ram_borrow` are
 * idle amounts of others that the tenant may also have now. `cpu_back` and `ram_back` are amounts of
 * its quota that a server could take back from the tenants that borrowed them (`back_from`). `network`
 * is the tenant's setting for its jobs and notebooks, null without a setting. `job_network` is the
 * network of its jobs: `none` or `outbound`. `environments` are the names of the environments that are
 * ready.
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
 * Result, or preview of the result, of one line.
 *
 * `new`: the account is made. `joins`: the account exists, and is put into the team. `there`: nothing
 * is left to do. `made` and `joined`: this was done. `refused`: nothing is done, and `note` has the
 * reason. A `password` is shown this once.
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
 * Personal token for a program.
 *
 * Without `scopes` it has all scopes of the asking token. Without `expires_in` (seconds) it is valid
 * for 30 days, or for the remaining time of the asking token if that is less.
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
 * Token that the hub gave a user on its own page, for the audit log.
 *
 * The fields are the asker, the purpose, the scopes, and the time of expiry.
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
 * State of an account at the login's provider, as reported by the hub that asked the provider.
 *
 * `groups` are the account's groups now. `left_out` are those that are not taken, with the reason.
 * `ended`: the account was removed there (`disabled`), or only that login ended (`session`). In both
 * cases `groups` are the last known ones. `tokens` is the number of the user's tokens that ended
 * because the account was removed just now. `admin`: a group made the user a platform admin just now,
 * or took that away.
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
 * Tenant with its quota (null: the nodes' capacity) and its use.
 *
 * `borrowed`, `lent`, `lendable` and `free` are by dimension (`cpu`, `gpu`, `gpu:KIND`, `ram`, `rom`).
 * Zeroes of the first three are left out. `borrowed` is use beyond its quota. `lent` is the part of
 * its idle quota that others hold now. Where several tenants could have lent it, each counts in
 * proportion to its idle quota. `lendable` is the part that it would still lend. `free` is the amount
 * that it may take now, borrowing included. A dimension without a limit is left out.
 *
 * `over` is use beyond all that it may hold with others as they are, for example after its quota was
 * lowered. Nothing is stopped for that alone. `lowered` is the part of its guarantee that holds while
 * the guarantee is lowered because the tenant is idle for long. `lending_limit` and `reserved` are as
 * configured. `notes` are, in the answer to a change, the booked windows of this tenant or others that
 * no longer fit, or that fit again.
 *
 * `isolation` is the chosen grade for its files. `move` is their move to that grade, and is null where
 * they never moved. `network` is as configured (null: the hub's default). `job_network` is the network
 * of its jobs: `none` or `outbound`. `running` and `waiting` count jobs, without replicas of apps.
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
  amounts: {
    [k: string]: number;
  };
  amounts_inuse: {
    [k: string]: number;
  };
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
 * Reduced guarantee of a tenant that is idle for long: its lending limit and its reservation.
 *
 * It ends when a job of the tenant waits, or when a server of the tenant asks.
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
 * Last move of a tenant's files from one grade of isolation to another.
 *
 * `state`: `waiting` for running work, `copying`, `comparing`, `removing` the copied originals,
 * `done`. `undoing` and `failed` mean that the move was called off or cannot be done, with the reason
 * in `message`. `done` and `total` are bytes of the present state.
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
 * New tenant; a quota that is left out (null) means the nodes' capacity.
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
  /**
   * amounts of dimensions that have no field here, by name
   */
  amounts?: {
    [k: string]: number;
  };
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
   * what its own jobs go by: `priority` (priority, then age); `fifo` (age alone); `fair` (turns of its members, by current and recent use); `maxmin` (turns of its members, by current use). Under age alone no job of it stops another for its priority; in turns each member's jobs go by priority. Where the hub orders the jobs of all tenants in one line, that order holds instead
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
  /**
   * amounts of dimensions that have no field here, by name
   */
  amounts?: {
    [k: string]: number;
  };
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
   * what its own jobs go by: `priority` (priority, then age); `fifo` (age alone); `fair` (turns of its members, by current and recent use); `maxmin` (turns of its members, by current use). Under age alone no job of it stops another for its priority; in turns each member's jobs go by priority. Where the hub orders the jobs of all tenants in one line, that order holds instead
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
 * Preview of an update of a tenant; the request itself changes nothing.
 *
 * The update stops nothing. `stopped` are jobs whose room other jobs would take, as the scheduler
 * decides on the tenants after the update. `back_inside` is the time when the tenant is expected to
 * hold no more than it may, from the time limits of the running work. It is null where the tenant
 * holds no more anyway, or where no time is known. `back_inside_because` is the end that makes it so,
 * or the reason why no end does so. Lists hold 20 jobs at most. `notes` have everything as sentences,
 * and count all jobs.
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
  amounts: {
    [k: string]: number;
  };
  since: string;
  job: string | null;
  app: string | null;
  replica: number | null;
}
/**
 * Use by a tenant's jobs in the last 7 days: core-hours, device-hours, and the most at once.
 *
 * Only the runs that are kept count.
 */
export interface UsageTotal {
  cpu_hours: number;
  gpu_hours: number;
  cpu_most: number;
  gpu_most: number;
}
/**
 * Use of a tenant in the hour that begins at `time`: means of samples every 5 minutes, and most jobs.
 *
 * `cpu` and `gpu` are units held by jobs, servers and apps. `jobs` has the sums of the jobs' use.
 * `ram` is in MiB, `rom` in bytes. Job counts are the most at once. Hours in which the hub was down
 * are left out.
 */
export interface UsageHour {
  time: string;
  cpu: number;
  gpu: number;
  ram: number;
  rom: number;
  amounts: {
    [k: string]: number;
  };
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
  amounts: {
    [k: string]: number;
  };
  reason: string;
  state: "accepted" | "declined" | "open" | "withdrawn";
  decided_by: string | null;
  decided_at: string | null;
  word: string;
}
/**
 * Requested total of a tenant in each dimension that is named; the other dimensions stay.
 *
 * `reason` is the purpose.
 */
export interface QuotaAsk {
  reason: string;
  cpu?: number | null;
  gpu?: number | null;
  ram?: number | null;
  rom?: number | null;
  /**
   * amounts of dimensions that have no field here, by name
   */
  amounts?: {
    [k: string]: number;
  };
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
 * Action of an actor on an object, such as `tenant.update` on `red`.
 *
 * `actor` is a user's name, or `system` for actions of the hub itself. `detail` depends on the action.
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
 * Limit on the jobs and notebook servers that a member holds at once in the tenant.
 *
 * `user` is null in the limit for each member without an individual cap.
 */
export interface MemberCap {
  user: string | null;
  cpu: number | null;
  gpu: number | null;
  jobs: number | null;
}
/**
 * Limit on the jobs and notebook servers that a member holds at once in the tenant.
 *
 * Null in a dimension means as much as the tenant may hold. `user` null means each member without an
 * individual cap. A cap in which all values are null is removed.
 */
export interface MemberCapSet {
  user?: string | null;
  cpu?: number | null;
  gpu?: number | null;
  jobs?: number | null;
}
/**
 * Booked window that is not over.
 *
 * `open`: the window has begun. `short`: a quota was lowered or nodes left, and the window no longer
 * fits. It is null while all of the amount can be held, and again as soon as it can. `notes` are
 * further remarks, as sentences.
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
 * New booked window: from `start` to before `end` the amount is kept free for the tenant.
 *
 * The amount is in addition to the tenant's reservation.
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
 * Role of ranks: `count` of the ranks that `--workers` gives, or all the remaining ones where it is null.
 *
 * Ranks of the role `ps` are additional, and their number is that of `--ps`. `program` is the command
 * of such a rank, where it differs from the runtime's.
 */
export interface RuntimeRole {
  name: string;
  count: number | null;
  program: string[] | null;
}
/**
 * Runtime of a tenant.
 *
 * Commands are lists of arguments, and a shell does not read them. Commands and `env` can have places
 * in braces. `launcher` starts the ranks and gives each its number in the variable `rank_env`. Without
 * a launcher the ranks are started side by side. `needs` is the Python package that every program
 * needs to start. The job has ended when all ranks have ended, or at the latest `linger_s` seconds
 * after the first rank of the role `ends_with`. Exit statuses in `success` are not failures. 0 is
 * never a failure.
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
  /**
   * amounts of dimensions that have no field here, by name
   */
  amounts?: {
    [k: string]: number;
  };
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
 * Claims of a client about the place that it submits from, kept to be shown and compared.
 *
 * The fields are the git commit of the directory, whether files in it have changed since that commit,
 * and the environment as lines NAME==VERSION.
 */
export interface Provenance {
  commit?: string | null;
  dirty?: boolean | null;
  environment?: string | null;
}
/**
 * Job with its status: `phase` is the fine life cycle, `state` the coarse one.
 *
 * A name has runs 1, 2, ...: `run` is the number of this one. In paths `NAME` means the latest run,
 * and `NAME@RUN` a certain one.
 *
 * A job can run in several attempts: it is stopped and waits again, or continues in another size.
 * `started_at` and `finished_at` are of the last attempt. `ran_s` is the number of seconds that all
 * finished attempts ran. The attempt in progress has also run since `started_at`. `waited_s` is the
 * number of seconds of all waits in the queue that are over. While the job waits, it has also waited
 * since `waiting_since`. Its age in the queue counts from `queued_at`. A job that is stopped for
 * others keeps its age there. The present attempt began with `progress_from` at `progress_since`, null
 * before it reported anything.
 *
 * `sweep` is the name of the sweep, and `trial` the job's trial number in it. `sweep` is null where
 * the job is not a trial.
 *
 * `put_first`: an admin of the tenant put the job before the others of its queue.
 *
 * `source` is the user's object in the cluster, `MPIJob NAMESPACE/NAME`, which has its own pods
 * instead of a program. It is null for a job that was submitted here.
 *
 * `env_name` is the environment of the job's Python. `env_lock` is the SHA-256 of the lock that this
 * environment was built from, or the digest by which its image was named.
 *
 * `expected_start` comes from time limits: it is the latest time unless more important work arrives.
 * `forecast` comes from earlier runs. It is null if fewer than two are known.
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
  amounts: {
    [k: string]: number;
  };
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
  forecast: RunForecast | null;
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
 * Forecast of a job from the run times of earlier runs of the same user, with the same shape and the same program or name.
 *
 * `start` is null once the job has started, or if too little is known of the jobs ahead of it. `end` is
 * null if the job has fewer than two earlier runs, or runs longer than nine of ten of them. `runs` is
 * the number of its own earlier runs that count. `because` is the source of the forecast, or says how
 * much longer the job runs than its earlier runs.
 */
export interface RunForecast {
  start: ForecastRange | null;
  end: ForecastRange | null;
  runs: number;
  because: string;
}
/**
 * Quantiles of a time: with a chance of about 10 % it is before `p10`, of 50 % before `p50`, of 90 % before `p90`.
 */
export interface ForecastRange {
  p10: string;
  p50: string;
  p90: string;
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
 * First fault of a job.
 *
 * `hint` is its probable cause. `no-network`: the tenant's jobs have no network, and the program looked for
 * another machine. `network-missing`: the same, and this machine cannot give the network that the tenant may
 * have. `memory-files`: /dev/shm or /tmp, which are memory, were full. `more-memory`: the job ran out of memory.
 * `same-memory`: the same, and it is not tried again with the same amount. `process-limit` and
 * `descriptor-limit`: the job reached its limit of processes or descriptors. `nobody-answers`: the job asked for
 * input. `starts-at-home`: the job did not find a file by a path relative to another directory.
 * `command-missing`: its shell did not find a command. `module-missing`: the job imported a module that does not
 * exist. `own-program`: the job used a name of the notebook. `remedy` is the hint as a sentence, with the person
 * who can act on it. It is empty without a hint.
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
 * Preview of a job, as if it were created now.
 *
 * The job would be run `run` of its name. It would have `ranks_min` to `ranks_max` ranks, parameter
 * servers included. `offer` has its total resources, and whether it would start now. A job that could
 * never start is refused, as its creation is.
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
 * Offer for a job of this shape.
 *
 * `fits_now`: the job would start as soon as the jobs of `gives_way` have made room, at once if
 * `gives_way` is empty. `gives_way` has one sentence for each job that would be stopped or give up
 * workers. It names other jobs of the same tenant only. `grace` is the number of seconds that these
 * jobs have to end, and is 0 where no job gives way. `expected_because` is the source of
 * `expected_start`, or the reason why no time is known. `network` is the network of the jobs of
 * `tenant`: `none` or `outbound`.
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
  amounts: {
    [k: string]: number;
  };
  reasons: Verdict[];
  would_start_now: string[];
  gives_way: string[];
  grace: number;
  expected_because: string;
  forecast: RunForecast | null;
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
 * Changes for a new run; fields that are left out keep their value.
 *
 * `params` are set over the earlier parameters. `args` replace all earlier arguments. With `exactly`
 * nothing may change: the request is refused where the script, a dataset, or the environment of
 * `provenance` differs from the earlier run.
 */
export interface Resubmit {
  workers?: number | string;
  cpu?: number;
  gpu?: number;
  ram?: number;
  /**
   * amounts of dimensions that have no field here, by name
   */
  amounts?: {
    [k: string]: number;
  };
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
 * Changes of a job that has not ended; fields that are left out keep their value.
 *
 * The owner of the job may lower its priority and change its time limit while the job waits. An admin
 * of its tenant may change both for any job there. The admin may also change the time limit of a
 * running job, and the `place` of a job in the tenant's queue: `first`, before all others, or its
 * `own` place.
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
  forecast: RunForecast | null;
  how_sure: "likely" | "sure" | "unknown";
  sure_because: string;
  would_start_now: string[];
  cut_short: string;
  stopped: Stopped | null;
}
/**
 * Stop of the last attempt of a job that waits, starts or runs again, and the work that is kept of it.
 *
 * `kind` is preempted (for another job), suspended or requeued (after a failure). `message` names other jobs of
 * the same tenant only. `checkpoint_at` is the time of the newest file in the checkpoint directory, null without
 * one. `kept` is empty and `checkpoint_at` null once the job runs again.
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
 * Attempt of a job, counted from 1, with its stages in order.
 *
 * `ended` is the kind of event that ended the attempt, as in the job's timeline. It is null while the
 * attempt is in progress.
 */
export interface JobAttempt {
  attempt: number;
  stages: AttemptStage[];
  ended: string | null;
  ended_at: string | null;
}
/**
 * Stage of an attempt: its time, and the seconds since the stage before, null for the first stage.
 *
 * The stages: the attempt was queued, it was admitted, its pods were created, the pods were bound to
 * nodes, their images were pulled, their containers began, the first program started, and the first
 * line of output was written. Jobs on one machine have no pods.
 */
export interface AttemptStage {
  stage: "admitted" | "bound" | "created" | "first-line" | "pulled" | "queued" | "started";
  time: string;
  seconds: number | null;
}
/**
 * Reason for an action of the scheduler on a job: its time, its place, and the choice of this job.
 *
 * `kind` is admitted, preempted or resized. The time is that of the decision. An admission follows
 * when the jobs that make room for it have ended. `waited_for` is the last reason for the wait
 * (`waited_reason` is its type). `changed` is the list of changes since then. `passed` are the first
 * of the jobs that were considered before it and did not start, and `passed_count` is their number.
 * `order` is the order of its queue, and `rule` is the rule of placement. `nodes` are the few best
 * places. `only`: no other place existed. `victims` are the jobs that could have been stopped.
 * `spared` are the reasons why the others could not. `share` is the tenant's dominant share before.
 * For cycles with very many decisions only `summary` is kept. `detail` is the summary as data.
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
 * Node that was considered for a job: its ranks, its free amounts after that, and its score.
 *
 * The ranks are those that the job got there or would have got. Scores are compared from the left, and
 * the smallest is best. Their parts depend on the placement rule.
 */
export interface DecisionNode {
  node: string;
  ranks: number;
  chosen: boolean;
  free_after: string;
  score: number[];
}
/**
 * Running job that could have been stopped for another: the loss, and the reason for the choice.
 *
 * `lost_work` is the most that can be lost, less the work that the job saves when it is asked to end.
 * It is in `lost_unit`: gpu-seconds, or core-seconds for a job without a gpu. The unit is empty where
 * an older hub did not store it. `gives` is the number of workers that the job gives up instead of
 * all. It is 0 where the job is stopped or left alone. `right` is the ground on which a chosen job
 * makes room: reclaim, priority, in-one-piece or extra (workers beyond the least of an elastic job).
 *
 * Names are null where the asker may not see them. For jobs that share with the asker's tenant, the
 * tenant is named. For a replica of an app, `job` is the app's name, and `replica` is its number.
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
 * Action on runs: cancel them, delete those that ended, or add and remove tags.
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
 * Outcome of the action for one run.
 *
 * `reason` and `msg` are the reason why nothing was done. Both are empty where the action was done.
 */
export interface RunOutcome {
  run: string;
  reason: string;
  msg: string;
}
/**
 * Curves of a run.
 *
 * `reported` is the number of points that they were made of. `more`: there are further metrics.
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
  amounts: {
    [k: string]: number;
  };
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
 * Dataset that a run read: `uid` is exactly that one, `size` its bytes when the run was submitted.
 *
 * `digest` is the state of its files when the run first started: a SHA-256 of their paths, lengths and
 * checksums. It is null before that, and where there are too many files. Of `files` files, `checked`
 * are included with a checksum. The others are included with the time of their last write.
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
 * Notes and tags that users give to a run; fields that are left out keep their value.
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
  /**
   * amounts of dimensions that have no field here, by name
   */
  amounts?: {
    [k: string]: number;
  };
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
 * Sweep with its outcome.
 *
 * `best` is the best trial so far, null before any trial has a value. `trials` are the trials that
 * were made. A list of sweeps leaves them out. `budget_trials`, `budget_core_hours` and `deadline` are
 * the budget, and `core_hours` is the use so far. `array`: the sweep is an array, with the parameter
 * `index`.
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
  amounts: {
    [k: string]: number;
  };
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
 * Numbers of trials by state; trials in progress are waiting or running.
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
 * Trial of a sweep.
 *
 * `job` is the name of its job, null before the job exists. `value` is the value that it reported
 * last. `steps` counts the values that it reported. `core_hours` is the use of the trial, so far while
 * it is in progress.
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
 * Preview of a sweep and its cost: `at_a_time` trials at once in the present state of the platform.
 *
 * `core_hours` and `expected_end` are null where they cannot be known. `because` is the reason for
 * that, or the source of the values.
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
 * Increase of a sweep's budget: trials, core-hours, or seconds from now.
 *
 * A sweep that has ended continues.
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
 * Stored report of one rank, as its process made it; null replaces a value that is not a finite number.
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
 * All newest attempts of the job, in order; they replace those sent before.
 */
export interface AttemptsFrame {
  type: "attempts";
  attempts: JobAttempt[];
}
/**
 * Lines of one rank; `offset` is the cursor behind them.
 *
 * `dropped` bytes are missing before the lines, and `dropped_lines` lines. The latter is null where
 * the lines were not counted. A line of the stream `mlp` marks their position.
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
 * Line of the frame's rank; the next line of the stream continues a line with `partial`.
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
 * Marker that all existing data is sent; the frames after it are new.
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
 * Line of a rank's output.
 *
 * A `partial` line has no end yet. The next line of its rank and stream continues it, as progress bars
 * do. Text that begins with `\r\x1b[J` replaces the line so far. `\x1b[E` separates the rows of that
 * text. The stream `mlp` marks the position of missing log lines.
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
 * Version of a model to register: `src` is the file, or the directory with all below it, that it is from.
 *
 * With `any_files` all files are accepted. Otherwise files that are not a model of a known format are
 * an error.
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
 * Version of a model; in paths `NAME` means the latest version, `NAME@VERSION` a certain one.
 *
 * `size` is in bytes: the reserved size while the model is created, then the exact size of its files.
 * `format` is found by names and headers, and nothing is loaded. To load a `pickled` model runs code
 * that is in it. `facts` are the data of its header.
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
 * App to deploy: the platform serves a model by the Open Inference Protocol, or a `command` runs.
 *
 * The command listens on `command_port`, which the variable PORT names. cpu, gpu and ram are per replica.
 * `replicas` is MIN:MAX. The number of replicas follows the load: each gets about `concurrency` requests at once. A replica
 * that was not needed for `idle` seconds ends; with a MIN of 0 none runs without requests. With `replace` an
 * existing app of this name changes: replicas of the new one answer before those of the old one end.
 * `env_name` is an environment of the tenant with the packages of the server or the command. `access` lists
 * the callers in addition to the owner and the app's keys: members of its tenant, or everybody of the hub.
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
 * App as users with access to it see it: its address and its state, but not its configuration.
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
 * Number of replicas from now on.
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
 * Source of a dataset's objects.
 *
 * `url` is s3://BUCKET/PREFIX. `endpoint` is the address of the store, as https://HOST:PORT. Without
 * `endpoint` the objects are at Amazon's.
 *
 * `secret` is the name of the secret that opens the source: the user's own, or else the tenant's.
 * Without `secret` the source is open to everybody. With the `mode` `copy` the platform copies all
 * objects. With `read-through` it copies nothing: a reader of a file gets it from the source, and a
 * job gets the files that it names. Those files count in the tenant's `rom` until no job needs them.
 */
export interface DatasetSource {
  url: string;
  endpoint: string | null;
  region: string | null;
  secret: string | null;
  mode: "copy" | "read-through";
}
/**
 * Dataset of a user.
 *
 * `size` is the number of bytes that the dataset takes of its tenant's `rom`. `used` is the size of
 * its files, and `size` becomes equal to it. `path` is the address of its files, below the platform's
 * address. The page of phases has the state machine.
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
 * Progress of a dataset's upload, as reported by the uploader.
 */
export interface DatasetHeartbeat {
  state: "creating" | "error" | "ready";
  progress: number;
}
/**
 * Access of a token to the files of a dataset, for the part of the platform that holds the files.
 *
 * `owner` is the system uid of the files' owner. It is null where the files are the platform's own.
 * `through`: the files are those of the dataset's source.
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
 * Request to write `size` bytes to the dataset with this uid.
 */
export interface StorageTake {
  uid: string;
  size: number;
  once?: string | null;
}
/**
 * End of a write: the bytes that are no longer needed, and the growth of the files.
 *
 * `granted` is the part of the taken bytes that is not needed any more. `grown` is negative where the
 * files have shrunk. `gone` is the apparent number of removed bytes. The service measures the files
 * itself, since the owner of files controls their reported length. `took` is the key of a take that
 * got no answer. Its bytes are given back. If that take arrives later, it takes nothing.
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
 * Request to read the source of the dataset with this uid: the object at `path`, or a list.
 *
 * A list has the objects whose paths begin with `path`. It is one page of at most `limit` objects
 * after `after`. `flat`: the list leaves out objects that are deeper than the next `/`.
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
 * Address of a source's object or list, valid for a few minutes, without a credential.
 *
 * The address is good for the requested object or list only.
 */
export interface SourceAddress {
  url: string;
  host: string;
  bucket: string;
  prefix: string;
  secret: boolean;
}
/**
 * Secret without its values: its name, the names of its keys, who set it, and when.
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
 * Contents of a secret, by name.
 *
 * An object store needs `access_key_id` and `secret_access_key`, and can need `session_token`.
 */
export interface SecretSet {
  keys: {
    [k: string]: string;
  };
}
/**
 * Notification choices of a user, and the possible choices.
 *
 * `mail`: this hub sends mail. `services` are the services whose addresses it takes.
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
 * Channel to a user, without the secret part of its address.
 *
 * `shown` is the part of the address that is not secret. `trouble` is the reason of the last failure.
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
 * Channel to a user.
 *
 * `address` is `mailto:ann@example.org`, `https://...`, or the address of a service. Without `address`
 * the channel keeps the present one.
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
 * Channel to try.
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
 * News of a job, or of a request of `tenant` where `job` is empty.
 *
 * `id` grows with time. `quiet`: the user does not want to be notified now.
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
 * Message to the members of `tenant`, or to everybody where `tenant` is empty.
 *
 * The text is plain text, and clients must show it as plain text.
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
 * Access to an app with an account of the hub: only its owner, the members of its tenant, or everybody.
 */
export interface AppAccessSet {
  access: "hub" | "private" | "tenant";
}
/**
 * Present access to an app with an account of the hub.
 */
export interface AppAccessNow {
  access: "hub" | "private" | "tenant";
}
/**
 * Requests to an app, or to all apps of a tenant, since the first request.
 *
 * `latency` counts answers by the first of `bounds_ms` within which they began. Its last item counts
 * slower answers. `p50_ms` and `p99_ms` are values of `bounds_ms`. They are null without requests, or
 * where the time was above all bounds. `minutes` covers the last hour, without the minutes that had no
 * requests.
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
 * Requests to an app in the minute that begins at `time`.
 *
 * `errors` counts answers with a status of 500 or above.
 */
export interface AppMinute {
  time: string;
  requests: number;
  errors: number;
  bytes_in: number;
  bytes_out: number;
}
/**
 * Question of the gateway about a request for an app, with the secret that the request brought.
 *
 * The app is given by user and app, or by the label of its host. `again`: the request was admitted and
 * is still open, and the gateway checks it again. Such a check is not a guess, even if other requests
 * from its address are guesses.
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
 * Verdict of the hub about a request for an app.
 *
 * The other fields are empty unless the verdict is `may`. An app that does not exist and an app that
 * is not open get the same answer.
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
 * Code that a browser brought to an app's own origin.
 *
 * `way` is the digest of the secret that the browser had when it asked for the code.
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
 * Requests to apps, as the gateway reports them.
 *
 * A repeated report counts once.
 */
export interface AppsUsed {
  /**
   * @maxItems 100
   */
  counted: CountedUse[];
}
/**
 * Counts of one gateway process (`run`) for an app, by its uid, or for the apps of a tenant.
 *
 * The counts begin with the process. `under_way` is the mean number of requests in progress since the
 * last report. `minutes` are the minutes that have changed.
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
 * Counts of the gateway for one minute, which is given by its number since the epoch.
 */
export interface CountedMinute {
  minute: number;
  requests: number;
  errors: number;
  bytes_in: number;
  bytes_out: number;
}
/**
 * State of the platform.
 *
 * `teams` are the tenants that hold most and those with the most waiting work, of `teams_all`.
 * `longest` waits longest. `nodes` counts the nodes that are present, `nodes_up` those that answer,
 * `nodes_open` those that take new work. `troubles` are the first of the other nodes. `apps_failing`
 * counts the apps in error, and `app_troubles` are the first of them. `running` counts jobs, without
 * replicas of apps. `waiting` is all waiting work. `forecasts` compares starts with their forecasts. `teams` and apps in error can be as old as `at`.
 * All other values are of this moment.
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
  forecasts: ForecastCalibration;
}
/**
 * Use of a tenant's quota (null: the nodes' capacity); the fields mean the same as those of a `Tenant`.
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
  amounts: {
    [k: string]: number;
  };
  amounts_inuse: {
    [k: string]: number;
  };
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
 * Count of waiting work for one reason; null: no cycle has looked at it yet.
 *
 * `message` is the message of the one that waits longest.
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
  amounts: {
    [k: string]: number;
  };
  submitted_at: string;
  waiting_since: string | null;
  waited_s: number;
  ran_s: number;
  started_at: string | null;
  expected_start: string | null;
  expected_because: string;
  forecast: RunForecast | null;
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
 * Fault of a node, with its message.
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
 * Starts of jobs before, inside and after the range (`p10` to `p90`) that was told first in that wait.
 *
 * `since` is the time of the first one, null without one. If very many are counted, old ones no longer
 * count: all counts are halved at 2,000 starts.
 */
export interface ForecastCalibration {
  since: string | null;
  before: number;
  inside: number;
  after: number;
}
/**
 * Node with its capacity, its allocatable amounts and its use.
 *
 * `up`: the node answers. `schedulable`: it takes new ranks of jobs that tolerate its `taints`.
 * Otherwise `conditions` are the reasons. The amounts that others than the hub hold there now
 * (`cpu_others` and so on) are not part of the allocatable amounts.
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
 * Taint that keeps workloads off a node.
 *
 * With the key `tenant` and the effect `NoSchedule` it reserves the node for that tenant.
 */
export interface Taint {
  key: string;
  value: string;
  effect: "NoExecute" | "NoSchedule" | "PreferNoSchedule";
}
/**
 * Preview of a node's drain.
 *
 * `drain` is how the node is drained, null while it is in service. `stops` is the work that runs on
 * it. `others` is the number of other nodes that take new work.
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
  /**
   * amounts of dimensions that have no field here, by name
   */
  amounts?: {
    [k: string]: number;
  };
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
 * Changes to simulate: tenants by name, new tenants by name, the policy, and nodes.
 *
 * Nodes are added, removed or down.
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
 * Changes of a tenant in a simulation.
 *
 * Fields that are left out keep their value. A quota that is null has no limit.
 */
export interface WhatIfTenant {
  cpu?: number | null;
  gpu?: number | null;
  ram?: number | null;
  rom?: number | null;
  gpu_kinds?: {
    [k: string]: number;
  };
  /**
   * amounts of dimensions that have no field here, by name
   */
  amounts?: {
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
 * Scheduling policy in a simulation; fields that are left out keep their value.
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
 * Results of a simulation: `before` is without the changes, `after` with them.
 *
 * A scenario has `after` only. `begin` is the instant that seconds count from. `remarks` are the
 * assumptions, and the limits of the results. `lines` are those of `after`, where requested.
 * `lines_left_out` is the number of lines that were too many.
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
 * Results of a whole run.
 *
 * `utilization` is from 0 to 1 by dimension. `lost_work_s` is worker-seconds of work that was done
 * twice. `waits` are the reasons for waits, the most frequent first. Each job counts once.
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
 * Results of one tenant: core and gpu hours used, share of all use, and fair share by weight.
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
 * Last reason for the wait of `jobs` jobs that did not run when the run began.
 *
 * `never` of them wait for it in vain. `message` has the numbers of one of them, `job` of `user`,
 * which waits longest.
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
 * Job whose start moves: seconds from the begin of the run, null where it does not start.
 *
 * `why` is the reason for its wait in the run in which it starts later, or never.
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
 * Real waits of the jobs of a window, counted for each time in the queue, to compare with `before`.
 */
export interface RecordedWaits {
  jobs: number;
  avg_wait_s: number;
  p50_wait_s: number;
  p99_wait_s: number;
}
