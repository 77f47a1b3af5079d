BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0012');
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
CREATE TABLE idempotency_key (
	user VARCHAR(255) NOT NULL, 
	"key" VARCHAR(255) NOT NULL, 
	fingerprint VARCHAR(64) NOT NULL, 
	answer TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	CONSTRAINT pk_idempotency_key PRIMARY KEY (user, "key")
);
CREATE TABLE job (
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
	version INTEGER NOT NULL, resize_to TEXT, ran_before DOUBLE, past TEXT, 
	CONSTRAINT pk_job PRIMARY KEY (uid), 
	CONSTRAINT uq_job_user_name UNIQUE (user, name)
);
INSERT INTO "job" VALUES('00000000000000000000000000','ann','digits0','red','{"name":"digits0","user":"ann","tenant":"red","runtime":"plain","per_worker":{"cpu":1000,"gpu":0,"ram":512,"rom":0,"kinds":[]},"workers_min":1,"workers_max":1,"ps":0,"entry":null,"code":"print(1)","args":[],"env":{},"gpu_kind":null,"priority":"normal","time_limit":null,"retries":0,"checkpoint_every":null,"topology":null}','queued','run',10.0,0,0,0,NULL,'','[]',11.0,NULL,NULL,NULL,NULL,'[]',0,NULL,NULL,'[null,0.0,0.0,null,null]');
INSERT INTO "job" VALUES('00000000000000000000000001','ann','digits1','red','{"name":"digits1","user":"ann","tenant":"red","runtime":"plain","per_worker":{"cpu":1000,"gpu":0,"ram":512,"rom":0,"kinds":[]},"workers_min":1,"workers_max":1,"ps":0,"entry":null,"code":"print(1)","args":[],"env":{},"gpu_kind":null,"priority":"normal","time_limit":null,"retries":0,"checkpoint_every":null,"topology":null}','running','run',10.0,1,0,0,NULL,'','[]',11.0,20.0,20.0,NULL,NULL,'[]',0,NULL,NULL,'[null,0.0,0.0,null,null]');
INSERT INTO "job" VALUES('00000000000000000000000002','ann','digits2','red','{"name":"digits2","user":"ann","tenant":"red","runtime":"plain","per_worker":{"cpu":1000,"gpu":0,"ram":512,"rom":0,"kinds":[]},"workers_min":1,"workers_max":1,"ps":0,"entry":null,"code":"print(1)","args":[],"env":{},"gpu_kind":null,"priority":"normal","time_limit":null,"retries":0,"checkpoint_every":null,"topology":null}','finished','run',10.0,2,0,0,NULL,'','[]',11.0,20.0,20.0,30.0,NULL,'[]',0,NULL,NULL,'[null,0.0,0.0,null,null]');
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
INSERT INTO "job_event" VALUES('00000000000000000000000000',1,10.0,'submitted','submitted',NULL);
INSERT INTO "job_event" VALUES('00000000000000000000000001',1,10.0,'submitted','submitted',NULL);
INSERT INTO "job_event" VALUES('00000000000000000000000002',1,10.0,'submitted','submitted',NULL);
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
CREATE TABLE metric_source (
	job VARCHAR(26) NOT NULL, 
	source VARCHAR(64) NOT NULL, 
	last BIGINT NOT NULL, 
	CONSTRAINT pk_metric_source PRIMARY KEY (job, source), 
	CONSTRAINT fk_metric_source_job_job FOREIGN KEY(job) REFERENCES job (uid) ON DELETE CASCADE
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
	user VARCHAR(255) NOT NULL, 
	CONSTRAINT pk_resource_request PRIMARY KEY (applier, id)
);
INSERT INTO "resource_request" VALUES('jm','00000000000000000000000001','request','red',1000,0,512,0,'[["a100",1000]]','confirmed',12.0,NULL,NULL,'[["n1",{"cpu":1000,"gpu":0,"ram":0,"rom":0,"kinds":[]}]]','try','','ann');
CREATE TABLE setting (
	"key" VARCHAR(64) NOT NULL, 
	value TEXT NOT NULL, 
	CONSTRAINT pk_setting PRIMARY KEY ("key")
);
INSERT INTO "setting" VALUES('tenants.revision','"7ef726322b3ddcb1"');
INSERT INTO "setting" VALUES('a.setting','{"x":[1,2]}');
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
	created_at DOUBLE NOT NULL, idle_since DOUBLE, lowered TEXT, queue_order VARCHAR(16) DEFAULT 'priority' NOT NULL, 
	CONSTRAINT pk_tenant PRIMARY KEY (name), 
	CONSTRAINT fk_tenant_parent_tenant FOREIGN KEY(parent) REFERENCES tenant (name)
);
INSERT INTO "tenant" VALUES('default',NULL,NULL,NULL,NULL,'{}',1.0,NULL,NULL,NULL,NULL,NULL,'shared','',0.0,NULL,NULL,'priority');
INSERT INTO "tenant" VALUES('red',8000,NULL,NULL,NULL,'{"a100":2000}',2.0,NULL,NULL,NULL,'{"cpu":1000,"gpu":null,"ram":null,"rom":null,"kinds":{}}',NULL,'shared','the red ones',5.0,NULL,NULL,'priority');
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
	created_at DOUBLE NOT NULL, 
	CONSTRAINT pk_user PRIMARY KEY (name), 
	CONSTRAINT uq_user_number UNIQUE (number)
);
INSERT INTO "user" VALUES('ann',1,'default',5.0);
CREATE INDEX ix_audit_tenant_id ON audit (tenant, id);
CREATE INDEX ix_idempotency_key_created_at ON idempotency_key (created_at);
CREATE INDEX ix_job_phase ON job (phase);
CREATE INDEX ix_job_tenant_uid ON job (tenant, uid);
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
COMMIT;
