BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0040');
CREATE TABLE announcement (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	tenant VARCHAR(50) NOT NULL, 
	level VARCHAR(16) NOT NULL, 
	text TEXT NOT NULL, 
	begins_at DOUBLE NOT NULL, 
	ends_at DOUBLE NOT NULL, 
	made_by VARCHAR(255) NOT NULL, 
	made_at DOUBLE NOT NULL
);
CREATE TABLE app (
	uid VARCHAR(26) NOT NULL, 
	user VARCHAR(255) NOT NULL, 
	name VARCHAR(50) NOT NULL, 
	tenant VARCHAR(50) NOT NULL, 
	spec TEXT NOT NULL, 
	port INTEGER NOT NULL, 
	phase VARCHAR(16) NOT NULL, 
	made_at DOUBLE NOT NULL, 
	generation INTEGER NOT NULL, 
	wanted INTEGER NOT NULL, 
	failures INTEGER NOT NULL, 
	not_before DOUBLE NOT NULL, 
	message TEXT NOT NULL, 
	tail TEXT NOT NULL, 
	CONSTRAINT pk_app PRIMARY KEY (uid), 
	CONSTRAINT uq_app_user_name UNIQUE (user, name), 
	CONSTRAINT uq_app_port UNIQUE (port)
);
CREATE TABLE app_key (
	id VARCHAR(26) NOT NULL, 
	app VARCHAR(26) NOT NULL, 
	name VARCHAR(50) NOT NULL, 
	sha256 VARCHAR(64) NOT NULL, 
	made_by VARCHAR(255) NOT NULL, 
	made_at DOUBLE NOT NULL, 
	used_at DOUBLE, 
	CONSTRAINT pk_app_key PRIMARY KEY (id), 
	CONSTRAINT fk_app_key_app_app FOREIGN KEY(app) REFERENCES app (uid) ON DELETE CASCADE, 
	CONSTRAINT uq_app_key_app_name UNIQUE (app, name), 
	CONSTRAINT uq_app_key_sha256 UNIQUE (sha256)
);
CREATE TABLE app_use (
	kind VARCHAR(8) NOT NULL, 
	name VARCHAR(50) NOT NULL, 
	run VARCHAR(32) NOT NULL, 
	counted TEXT NOT NULL, 
	"before" TEXT, 
	CONSTRAINT pk_app_use PRIMARY KEY (kind, name)
);
CREATE TABLE app_visit (
	sha256 VARCHAR(64) NOT NULL, 
	app VARCHAR(26) NOT NULL, 
	is_code BOOLEAN NOT NULL, 
	masked BLOB NOT NULL, 
	expires_at DOUBLE NOT NULL, 
	CONSTRAINT pk_app_visit PRIMARY KEY (sha256), 
	CONSTRAINT fk_app_visit_app_app FOREIGN KEY(app) REFERENCES app (uid) ON DELETE CASCADE
);
CREATE TABLE audit (
	id INTEGER NOT NULL, 
	time DOUBLE NOT NULL, 
	actor VARCHAR(255) NOT NULL, 
	action VARCHAR(64) NOT NULL, 
	object VARCHAR(255) NOT NULL, 
	tenant VARCHAR(50), 
	detail TEXT NOT NULL, 
	CONSTRAINT pk_audit PRIMARY KEY (id)
);
CREATE TABLE booking (
	tenant VARCHAR(50) NOT NULL, 
	name VARCHAR(50) NOT NULL, 
	starts_at DOUBLE NOT NULL, 
	ends_at DOUBLE NOT NULL, 
	amount TEXT NOT NULL, 
	made_by VARCHAR(255) NOT NULL, 
	made_at DOUBLE NOT NULL, short TEXT, 
	CONSTRAINT pk_booking PRIMARY KEY (tenant, name), 
	CONSTRAINT fk_booking_tenant_tenant FOREIGN KEY(tenant) REFERENCES tenant (name) ON DELETE CASCADE
);
CREATE TABLE browser_session (
	sha256 VARCHAR(64) NOT NULL, 
	user VARCHAR(255) NOT NULL, 
	masked BLOB NOT NULL, 
	expires_at DOUBLE NOT NULL, 
	CONSTRAINT pk_browser_session PRIMARY KEY (sha256)
);
CREATE TABLE "dataset" (
	uid VARCHAR(26) NOT NULL, 
	phase VARCHAR(16) NOT NULL, 
	progress INTEGER NOT NULL, 
	message TEXT NOT NULL, 
	source TEXT, 
	CONSTRAINT pk_dataset PRIMARY KEY (uid), 
	CONSTRAINT fk_dataset_uid_stored FOREIGN KEY(uid) REFERENCES stored (uid)
);
CREATE TABLE decision (
	id INTEGER NOT NULL, 
	job VARCHAR(26) NOT NULL, 
	time DOUBLE NOT NULL, 
	kind VARCHAR(16) NOT NULL, 
	text TEXT NOT NULL, 
	CONSTRAINT pk_decision PRIMARY KEY (id), 
	CONSTRAINT fk_decision_job_job FOREIGN KEY(job) REFERENCES job (uid) ON DELETE CASCADE
);
CREATE TABLE ended_job (
	job VARCHAR(26) NOT NULL, 
	user VARCHAR(255) NOT NULL, 
	ended_at DOUBLE NOT NULL, 
	bytes BIGINT NOT NULL, 
	CONSTRAINT pk_ended_job PRIMARY KEY (job), 
	CONSTRAINT fk_ended_job_job_job FOREIGN KEY(job) REFERENCES job (uid) ON DELETE CASCADE
);
CREATE TABLE environment (
	uid VARCHAR(26) NOT NULL, 
	tenant VARCHAR(50) NOT NULL, 
	name VARCHAR(50) NOT NULL, 
	folded VARCHAR(50) NOT NULL, 
	user VARCHAR(255) NOT NULL, 
	phase VARCHAR(16) NOT NULL, 
	requirements TEXT NOT NULL, 
	lock TEXT NOT NULL, 
	files VARCHAR(26) NOT NULL, 
	log TEXT NOT NULL, 
	message TEXT NOT NULL, 
	made_at DOUBLE NOT NULL, image VARCHAR(500), 
	CONSTRAINT pk_environment PRIMARY KEY (uid), 
	CONSTRAINT uq_environment_tenant_folded UNIQUE (tenant, folded)
);
CREATE TABLE idempotency_key (
	user VARCHAR(255) NOT NULL, 
	"key" VARCHAR(255) NOT NULL, 
	fingerprint VARCHAR(64) NOT NULL, 
	answer TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	CONSTRAINT pk_idempotency_key PRIMARY KEY (user, "key")
);
CREATE TABLE "job" (
	uid VARCHAR(26) NOT NULL, 
	user VARCHAR(255) NOT NULL, 
	name VARCHAR(50) NOT NULL, 
	tenant VARCHAR(50) NOT NULL, 
	spec TEXT NOT NULL, 
	phase VARCHAR(16) NOT NULL, 
	target VARCHAR(16) NOT NULL, 
	submitted_at DOUBLE NOT NULL, 
	restarts INTEGER NOT NULL, 
	failures INTEGER NOT NULL, 
	progress INTEGER NOT NULL, 
	reason VARCHAR(64), 
	message TEXT NOT NULL, 
	placement TEXT NOT NULL, 
	queued_at DOUBLE, 
	admitted_at DOUBLE, 
	started_at DOUBLE, 
	finished_at DOUBLE, 
	failure TEXT, 
	ranks TEXT NOT NULL, 
	version INTEGER NOT NULL, 
	resize_to TEXT, 
	ran_before DOUBLE, 
	past TEXT, 
	run INTEGER NOT NULL, sweep VARCHAR(26), trial INTEGER, steered TEXT, 
	CONSTRAINT pk_job PRIMARY KEY (uid), 
	CONSTRAINT uq_job_user_name_run UNIQUE (user, name, run)
);
INSERT INTO "job" VALUES('00000000000000000000000000','ann','digits0','red','{"name":"digits0","user":"ann","tenant":"red","runtime":"plain","per_worker":{"cpu":1000,"gpu":0,"ram":512,"rom":0,"kinds":[]},"workers_min":1,"workers_max":1,"ps":0,"entry":null,"code":"print(1)","args":[],"env":{},"gpu_kind":null,"priority":"normal","time_limit":null,"retries":0,"checkpoint_every":null,"topology":null,"tensorboard":"on","data":[],"own_runtime":null,"brought":null,"replica":null,"params":{},"trial":null,"environment":null,"language":""}','queued','run',10.0,0,0,0,NULL,'','[]',11.0,NULL,NULL,NULL,NULL,'[]',0,NULL,NULL,'[null,0.0,0.0,null,null]',1,NULL,NULL,NULL);
INSERT INTO "job" VALUES('00000000000000000000000001','ann','digits1','red','{"name":"digits1","user":"ann","tenant":"red","runtime":"plain","per_worker":{"cpu":1000,"gpu":0,"ram":512,"rom":0,"kinds":[]},"workers_min":1,"workers_max":1,"ps":0,"entry":null,"code":"print(1)","args":[],"env":{},"gpu_kind":null,"priority":"normal","time_limit":null,"retries":0,"checkpoint_every":null,"topology":null,"tensorboard":"on","data":[],"own_runtime":null,"brought":null,"replica":null,"params":{},"trial":null,"environment":null,"language":""}','running','run',10.0,1,0,0,NULL,'','[]',11.0,20.0,20.0,NULL,NULL,'[]',0,NULL,NULL,'[null,0.0,0.0,null,null]',1,NULL,NULL,NULL);
INSERT INTO "job" VALUES('00000000000000000000000002','ann','digits2','red','{"name":"digits2","user":"ann","tenant":"red","runtime":"plain","per_worker":{"cpu":1000,"gpu":0,"ram":512,"rom":0,"kinds":[]},"workers_min":1,"workers_max":1,"ps":0,"entry":null,"code":"print(1)","args":[],"env":{},"gpu_kind":null,"priority":"normal","time_limit":null,"retries":0,"checkpoint_every":null,"topology":null,"tensorboard":"on","data":[],"own_runtime":null,"brought":null,"replica":null,"params":{},"trial":null,"environment":null,"language":""}','finished','run',10.0,2,0,0,NULL,'','[]',11.0,20.0,20.0,30.0,NULL,'[]',0,NULL,NULL,'[null,0.0,0.0,null,null]',1,NULL,NULL,NULL);
CREATE TABLE job_event (
	job VARCHAR(26) NOT NULL, 
	seq INTEGER NOT NULL, 
	time DOUBLE NOT NULL, 
	kind VARCHAR(32) NOT NULL, 
	message TEXT NOT NULL, 
	reason VARCHAR(64), 
	CONSTRAINT pk_job_event PRIMARY KEY (job, seq), 
	CONSTRAINT fk_job_event_job_job FOREIGN KEY(job) REFERENCES job (uid) ON DELETE CASCADE
);
INSERT INTO "job_event" VALUES('00000000000000000000000000',1,10.0,'submitted','{"id":"submitted"}',NULL);
INSERT INTO "job_event" VALUES('00000000000000000000000001',1,10.0,'submitted','{"id":"submitted"}',NULL);
INSERT INTO "job_event" VALUES('00000000000000000000000002',1,10.0,'submitted','{"id":"submitted"}',NULL);
CREATE TABLE job_metrics (
	job VARCHAR(26) NOT NULL, 
	seq_last BIGINT NOT NULL, 
	seq_first BIGINT NOT NULL, 
	source VARCHAR(64) NOT NULL, 
	source_last BIGINT NOT NULL, 
	payload BLOB NOT NULL, 
	CONSTRAINT pk_job_metrics PRIMARY KEY (job, seq_last), 
	CONSTRAINT fk_job_metrics_job_job FOREIGN KEY(job) REFERENCES job (uid) ON DELETE CASCADE
);
CREATE TABLE job_token (
	sha256 VARCHAR(64) NOT NULL, 
	job VARCHAR(26) NOT NULL, 
	created_at DOUBLE NOT NULL, 
	CONSTRAINT pk_job_token PRIMARY KEY (sha256), 
	CONSTRAINT fk_job_token_job_job FOREIGN KEY(job) REFERENCES job (uid) ON DELETE CASCADE
);
CREATE TABLE join_request (
	tenant VARCHAR(50) NOT NULL, 
	user VARCHAR(255) NOT NULL, 
	asked_at DOUBLE NOT NULL, 
	note TEXT NOT NULL, 
	CONSTRAINT pk_join_request PRIMARY KEY (tenant, user), 
	CONSTRAINT fk_join_request_tenant_tenant FOREIGN KEY(tenant) REFERENCES tenant (name) ON DELETE CASCADE
);
CREATE TABLE lease (
	name VARCHAR(32) NOT NULL, 
	holder VARCHAR(255) NOT NULL, 
	expires_at DOUBLE NOT NULL, epoch BIGINT DEFAULT '0' NOT NULL, 
	CONSTRAINT pk_lease PRIMARY KEY (name)
);
CREATE TABLE member (
	tenant VARCHAR(50) NOT NULL, 
	user VARCHAR(255) NOT NULL, 
	role VARCHAR(16) NOT NULL, 
	source VARCHAR(16) NOT NULL, 
	CONSTRAINT pk_member PRIMARY KEY (tenant, user), 
	CONSTRAINT fk_member_tenant_tenant FOREIGN KEY(tenant) REFERENCES tenant (name) ON DELETE CASCADE
);
INSERT INTO "member" VALUES('red','ann','admin','local');
CREATE TABLE member_cap (
	tenant VARCHAR(50) NOT NULL, 
	user VARCHAR(255) NOT NULL, 
	cpu BIGINT, 
	gpu BIGINT, 
	jobs INTEGER, 
	CONSTRAINT pk_member_cap PRIMARY KEY (tenant, user), 
	CONSTRAINT fk_member_cap_tenant_tenant FOREIGN KEY(tenant) REFERENCES tenant (name) ON DELETE CASCADE
);
CREATE TABLE metric_source (
	job VARCHAR(26) NOT NULL, 
	source VARCHAR(64) NOT NULL, 
	last BIGINT NOT NULL, 
	CONSTRAINT pk_metric_source PRIMARY KEY (job, source), 
	CONSTRAINT fk_metric_source_job_job FOREIGN KEY(job) REFERENCES job (uid) ON DELETE CASCADE
);
CREATE TABLE model (
	uid VARCHAR(26) NOT NULL, 
	name VARCHAR(50) NOT NULL, 
	version INTEGER NOT NULL, 
	phase VARCHAR(16) NOT NULL, 
	stage VARCHAR(16) NOT NULL, 
	source TEXT NOT NULL, 
	lineage TEXT NOT NULL, 
	format TEXT NOT NULL, 
	files INTEGER NOT NULL, 
	any_files BOOLEAN NOT NULL, 
	message TEXT NOT NULL, 
	CONSTRAINT pk_model PRIMARY KEY (uid), 
	CONSTRAINT fk_model_uid_stored FOREIGN KEY(uid) REFERENCES stored (uid)
);
CREATE TABLE node_drain (
	node VARCHAR(253) NOT NULL, 
	reason VARCHAR(500) NOT NULL, 
	actor VARCHAR(255) NOT NULL, 
	since DOUBLE NOT NULL, 
	evict BOOLEAN NOT NULL, 
	CONSTRAINT pk_node_drain PRIMARY KEY (node)
);
CREATE TABLE notice (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	user VARCHAR(255) NOT NULL, 
	kind VARCHAR(16) NOT NULL, 
	job VARCHAR(26) NOT NULL, 
	name VARCHAR(50) NOT NULL, 
	run INTEGER NOT NULL, 
	tenant VARCHAR(50) NOT NULL, 
	at DOUBLE NOT NULL, 
	text TEXT NOT NULL
);
CREATE TABLE notice_channel (
	user VARCHAR(255) NOT NULL, 
	name VARCHAR(50) NOT NULL, 
	kind VARCHAR(16) NOT NULL, 
	shown VARCHAR(255) NOT NULL, 
	events TEXT NOT NULL, 
	sealed BLOB NOT NULL, 
	sent INTEGER NOT NULL, 
	changed_at DOUBLE NOT NULL, 
	tries INTEGER NOT NULL, 
	next_at DOUBLE NOT NULL, 
	told_at DOUBLE, 
	trouble TEXT, 
	CONSTRAINT pk_notice_channel PRIMARY KEY (user, name)
);
CREATE TABLE notice_choice (
	user VARCHAR(255) NOT NULL, 
	browser TEXT NOT NULL, 
	quiet_begin INTEGER, 
	quiet_end INTEGER, 
	zone VARCHAR(64) NOT NULL, 
	CONSTRAINT pk_notice_choice PRIMARY KEY (user)
);
CREATE TABLE quota_request (
	uid VARCHAR(27) NOT NULL, 
	tenant VARCHAR(50) NOT NULL, 
	user VARCHAR(255) NOT NULL, 
	asked_at DOUBLE NOT NULL, 
	amounts TEXT NOT NULL, 
	reason TEXT NOT NULL, 
	phase VARCHAR(16) NOT NULL, 
	decided_by VARCHAR(255), 
	decided_at DOUBLE, 
	word TEXT NOT NULL, 
	CONSTRAINT pk_quota_request PRIMARY KEY (uid), 
	CONSTRAINT fk_quota_request_tenant_tenant FOREIGN KEY(tenant) REFERENCES tenant (name) ON DELETE CASCADE
);
CREATE TABLE relocation (
	tenant VARCHAR(50) NOT NULL, 
	phase VARCHAR(16) NOT NULL, 
	old_grade VARCHAR(16) NOT NULL, 
	old_root TEXT NOT NULL, 
	new_grade VARCHAR(16) NOT NULL, 
	new_root TEXT NOT NULL, 
	asked_by VARCHAR(255) NOT NULL, 
	asked_at DOUBLE NOT NULL, 
	total BIGINT NOT NULL, 
	message TEXT NOT NULL, 
	ended_at DOUBLE, 
	CONSTRAINT pk_relocation PRIMARY KEY (tenant), 
	CONSTRAINT fk_relocation_tenant_tenant FOREIGN KEY(tenant) REFERENCES tenant (name) ON DELETE CASCADE
);
CREATE TABLE resource_request (
	applier VARCHAR(8) NOT NULL, 
	id VARCHAR(255) NOT NULL, 
	kind VARCHAR(8) NOT NULL, 
	tenant VARCHAR(50) NOT NULL, 
	cpu BIGINT NOT NULL, 
	gpu BIGINT NOT NULL, 
	ram BIGINT NOT NULL, 
	rom BIGINT NOT NULL, 
	kinds TEXT, 
	phase VARCHAR(16) NOT NULL, 
	created_at DOUBLE NOT NULL, 
	expires_at DOUBLE, 
	node VARCHAR(255), 
	shares TEXT, 
	last VARCHAR(8) NOT NULL, 
	holder TEXT NOT NULL, 
	user VARCHAR(255) NOT NULL, environment VARCHAR(26), 
	CONSTRAINT pk_resource_request PRIMARY KEY (applier, id)
);
INSERT INTO "resource_request" VALUES('jm','00000000000000000000000001','request','red',1000,0,512,0,'[["a100",1000]]','confirmed',12.0,NULL,NULL,'[["n1",{"cpu":1000,"gpu":0,"ram":0,"rom":0,"kinds":[]}]]','try','','ann',NULL);
CREATE TABLE run_note (
	job VARCHAR(26) NOT NULL, 
	note TEXT NOT NULL, 
	CONSTRAINT pk_run_note PRIMARY KEY (job), 
	CONSTRAINT fk_run_note_job_job FOREIGN KEY(job) REFERENCES job (uid) ON DELETE CASCADE
);
CREATE TABLE run_origin (
	job VARCHAR(26) NOT NULL, 
	"commit" VARCHAR(64), 
	dirty BOOLEAN, 
	environment VARCHAR(64), 
	program VARCHAR(64), 
	data TEXT NOT NULL, 
	bytes BIGINT NOT NULL, 
	CONSTRAINT pk_run_origin PRIMARY KEY (job), 
	CONSTRAINT fk_run_origin_job_job FOREIGN KEY(job) REFERENCES job (uid) ON DELETE CASCADE
);
CREATE TABLE run_summary (
	job VARCHAR(26) NOT NULL, 
	seq BIGINT NOT NULL, 
	final BOOLEAN NOT NULL, 
	ran DOUBLE, 
	cpu_peak DOUBLE, 
	ram_peak BIGINT, 
	CONSTRAINT pk_run_summary PRIMARY KEY (job), 
	CONSTRAINT fk_run_summary_job_job FOREIGN KEY(job) REFERENCES job (uid) ON DELETE CASCADE
);
CREATE TABLE run_tag (
	job VARCHAR(26) NOT NULL, 
	tag VARCHAR(50) NOT NULL, 
	CONSTRAINT pk_run_tag PRIMARY KEY (job, tag), 
	CONSTRAINT fk_run_tag_job_job FOREIGN KEY(job) REFERENCES job (uid) ON DELETE CASCADE
);
CREATE TABLE run_text (
	sha256 VARCHAR(64) NOT NULL, 
	text TEXT NOT NULL, 
	CONSTRAINT pk_run_text PRIMARY KEY (sha256)
);
CREATE TABLE run_value (
	job VARCHAR(26) NOT NULL, 
	kind VARCHAR(8) NOT NULL, 
	name VARCHAR(100) NOT NULL, 
	number DOUBLE, 
	best DOUBLE, 
	low DOUBLE, 
	high DOUBLE, 
	text TEXT NOT NULL, 
	CONSTRAINT pk_run_value PRIMARY KEY (job, kind, name), 
	CONSTRAINT fk_run_value_job_job FOREIGN KEY(job) REFERENCES job (uid) ON DELETE CASCADE
);
CREATE TABLE runtime (
	tenant VARCHAR(50) NOT NULL, 
	name VARCHAR(50) NOT NULL, 
	definition TEXT NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	changed_by VARCHAR(255) NOT NULL, 
	changed_at DOUBLE NOT NULL, 
	CONSTRAINT pk_runtime PRIMARY KEY (tenant, name), 
	CONSTRAINT fk_runtime_tenant_tenant FOREIGN KEY(tenant) REFERENCES tenant (name) ON DELETE CASCADE
);
CREATE TABLE secret (
	tenant VARCHAR(50) NOT NULL, 
	user VARCHAR(255) NOT NULL, 
	name VARCHAR(50) NOT NULL, 
	keys TEXT NOT NULL, 
	sealed BLOB NOT NULL, 
	changed_at DOUBLE NOT NULL, 
	changed_by VARCHAR(255) NOT NULL, 
	CONSTRAINT pk_secret PRIMARY KEY (tenant, user, name)
);
CREATE TABLE service_account (
	user VARCHAR(255) NOT NULL, 
	tenant VARCHAR(50) NOT NULL, 
	made_by VARCHAR(255) NOT NULL, 
	made_at DOUBLE NOT NULL, 
	ended BOOLEAN NOT NULL, 
	CONSTRAINT pk_service_account PRIMARY KEY (user)
);
CREATE TABLE service_token (
	token VARCHAR(64) NOT NULL, 
	user VARCHAR(255) NOT NULL, 
	until DOUBLE, 
	CONSTRAINT pk_service_token PRIMARY KEY (token)
);
CREATE TABLE setting (
	"key" VARCHAR(64) NOT NULL, 
	value TEXT NOT NULL, 
	CONSTRAINT pk_setting PRIMARY KEY ("key")
);
INSERT INTO "setting" VALUES('tenants.revision','"49888717a1682bfa"');
INSERT INTO "setting" VALUES('a.setting','{"x":[1,2]}');
CREATE TABLE stored (
	uid VARCHAR(26) NOT NULL, 
	kind VARCHAR(16) NOT NULL, 
	tenant VARCHAR(50) NOT NULL, 
	user VARCHAR(255) NOT NULL, 
	name VARCHAR(255) NOT NULL, 
	made_at DOUBLE NOT NULL, 
	used BIGINT NOT NULL, 
	granted BIGINT NOT NULL, 
	reserved BIGINT NOT NULL, 
	CONSTRAINT pk_stored PRIMARY KEY (uid), 
	CONSTRAINT uq_stored_kind_user_name UNIQUE (kind, user, name)
);
CREATE TABLE sweep (
	uid VARCHAR(26) NOT NULL, 
	user VARCHAR(255) NOT NULL, 
	name VARCHAR(50) NOT NULL, 
	run INTEGER NOT NULL, 
	tenant VARCHAR(50) NOT NULL, 
	spec TEXT NOT NULL, 
	budget TEXT NOT NULL, 
	phase VARCHAR(16) NOT NULL, 
	outcome VARCHAR(16) NOT NULL, 
	made_at DOUBLE NOT NULL, 
	ended_at DOUBLE, 
	not_before DOUBLE NOT NULL, 
	message TEXT NOT NULL, 
	CONSTRAINT pk_sweep PRIMARY KEY (uid), 
	CONSTRAINT uq_sweep_user_name_run UNIQUE (user, name, run)
);
CREATE TABLE sweep_trial (
	sweep VARCHAR(26) NOT NULL, 
	number INTEGER NOT NULL, 
	job VARCHAR(26), 
	state VARCHAR(16) NOT NULL, 
	data TEXT NOT NULL, 
	message TEXT NOT NULL, 
	CONSTRAINT pk_sweep_trial PRIMARY KEY (sweep, number), 
	CONSTRAINT fk_sweep_trial_sweep_sweep FOREIGN KEY(sweep) REFERENCES sweep (uid) ON DELETE CASCADE
);
CREATE TABLE tenant (
	name VARCHAR(50) NOT NULL, 
	cpu BIGINT, 
	gpu BIGINT, 
	ram BIGINT, 
	rom BIGINT, 
	kinds TEXT NOT NULL, 
	weight DOUBLE NOT NULL, 
	cohort VARCHAR(50), 
	parent VARCHAR(50), 
	borrowing_limit TEXT, 
	lending_limit TEXT, 
	reserved TEXT, 
	isolation VARCHAR(16) NOT NULL, 
	description TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, idle_since DOUBLE, lowered TEXT, queue_order VARCHAR(16) DEFAULT 'priority' NOT NULL, network VARCHAR(16), settings TEXT, 
	CONSTRAINT pk_tenant PRIMARY KEY (name), 
	CONSTRAINT fk_tenant_parent_tenant FOREIGN KEY(parent) REFERENCES tenant (name)
);
INSERT INTO "tenant" VALUES('default',NULL,NULL,NULL,NULL,'{}',1.0,NULL,NULL,NULL,NULL,NULL,'shared','',0.0,NULL,NULL,'priority',NULL,NULL);
INSERT INTO "tenant" VALUES('red',8000,NULL,NULL,NULL,'{"a100":2000}',2.0,NULL,NULL,NULL,'{"cpu":1000,"gpu":null,"ram":null,"rom":null,"kinds":{}}',NULL,'shared','the red ones',5.0,NULL,NULL,'priority',NULL,'{}');
CREATE TABLE token_use (
	token VARCHAR(64) NOT NULL, 
	user VARCHAR(255) NOT NULL, 
	address VARCHAR(64) NOT NULL, 
	at DOUBLE NOT NULL, 
	CONSTRAINT pk_token_use PRIMARY KEY (token)
);
CREATE TABLE "usage" (
	account VARCHAR(306) NOT NULL, 
	value DOUBLE NOT NULL, 
	as_of DOUBLE NOT NULL, 
	CONSTRAINT pk_usage PRIMARY KEY (account)
);
CREATE TABLE usage_sample (
	tenant VARCHAR(50) NOT NULL, 
	time DOUBLE NOT NULL, 
	cpu BIGINT NOT NULL, 
	gpu BIGINT NOT NULL, 
	ram BIGINT NOT NULL, 
	rom BIGINT NOT NULL, 
	running INTEGER NOT NULL, 
	waiting INTEGER NOT NULL, 
	CONSTRAINT pk_usage_sample PRIMARY KEY (tenant, time)
);
CREATE TABLE user (
	name VARCHAR(255) NOT NULL, 
	number INTEGER NOT NULL, 
	default_tenant VARCHAR(50) NOT NULL, 
	created_at DOUBLE NOT NULL, language VARCHAR(16) DEFAULT '' NOT NULL, 
	CONSTRAINT pk_user PRIMARY KEY (name), 
	CONSTRAINT uq_user_number UNIQUE (number)
);
INSERT INTO "user" VALUES('ann',1,'default',5.0,'');
CREATE INDEX ix_audit_tenant_id ON audit (tenant, id);
CREATE INDEX ix_idempotency_key_created_at ON idempotency_key (created_at);
CREATE INDEX ix_resource_request_phase_expires_at ON resource_request (phase, expires_at);
CREATE INDEX ix_resource_request_tenant_phase ON resource_request (tenant, phase);
CREATE INDEX ix_job_token_job ON job_token (job);
CREATE INDEX ix_member_user ON member (user);
CREATE INDEX ix_tenant_parent ON tenant (parent);
CREATE INDEX ix_tenant_cohort ON tenant (cohort);
CREATE INDEX ix_decision_job_id ON decision (job, id);
CREATE INDEX ix_decision_time ON decision (time);
CREATE INDEX ix_tenant_reserves ON tenant (name) WHERE reserved IS NOT NULL;
CREATE INDEX ix_booking_ends_at ON booking (ends_at);
CREATE INDEX ix_ended_job_ended_at ON ended_job (ended_at);
CREATE INDEX ix_ended_job_user_ended_at ON ended_job (user, ended_at);
CREATE INDEX ix_audit_actor_id ON audit (actor, id);
CREATE INDEX ix_audit_action_id ON audit (action, id);
CREATE INDEX ix_audit_object_id ON audit (object, id);
CREATE INDEX ix_audit_time ON audit (time);
CREATE INDEX ix_decision_kind_id ON decision (kind, id);
CREATE INDEX ix_job_tenant_uid ON job (tenant, uid);
CREATE INDEX ix_job_phase ON job (phase);
CREATE INDEX ix_browser_session_expires_at ON browser_session (expires_at);
CREATE INDEX ix_token_use_user ON token_use (user);
CREATE INDEX ix_token_use_at ON token_use (at);
CREATE INDEX ix_service_account_tenant ON service_account (tenant);
CREATE INDEX ix_service_token_user ON service_token (user);
CREATE INDEX ix_stored_tenant ON stored (tenant);
CREATE INDEX ix_model_phase ON model (phase);
CREATE INDEX ix_app_tenant ON app (tenant);
CREATE INDEX ix_app_visit_app ON app_visit (app);
CREATE INDEX ix_app_visit_expires_at ON app_visit (expires_at);
CREATE INDEX ix_run_origin_environment ON run_origin (environment);
CREATE INDEX ix_run_origin_program ON run_origin (program);
CREATE INDEX ix_sweep_tenant ON sweep (tenant);
CREATE INDEX ix_sweep_phase ON sweep (phase);
CREATE UNIQUE INDEX ix_job_sweep_trial ON job (sweep, trial);
CREATE INDEX ix_notice_user_id ON notice (user, id);
CREATE INDEX ix_notice_at ON notice (at);
CREATE INDEX ix_environment_phase ON environment (phase);
CREATE INDEX ix_environment_files ON environment (files);
CREATE INDEX ix_quota_request_tenant_uid ON quota_request (tenant, uid);
CREATE INDEX ix_quota_request_phase ON quota_request (phase);
CREATE INDEX ix_join_request_user ON join_request (user);
CREATE INDEX ix_announcement_ends_at ON announcement (ends_at);
CREATE INDEX ix_dataset_phase ON dataset (phase);
DELETE FROM "sqlite_sequence";
COMMIT;
