-- Times are milliseconds since 1970, truths are 0 or 1, documents are JSON text: types that SQLite
-- and PostgreSQL share.

CREATE TABLE tokens (
    token_id   TEXT PRIMARY KEY,
    tenant_id  TEXT NOT NULL,
    token_hash TEXT NOT NULL UNIQUE,
    created_at BIGINT NOT NULL
);

CREATE TABLE clusters (
    tenant_id          TEXT NOT NULL,
    cluster_id         TEXT NOT NULL,
    namespace          TEXT NOT NULL,
    created_at         BIGINT NOT NULL,
    -- The next command's sequence: never goes back, whatever is deleted.
    next_sequence      BIGINT NOT NULL,
    -- The longest window that the agent takes, from its configuration.
    max_validity_s     BIGINT NOT NULL,
    contact_at         BIGINT,
    cluster_uid        TEXT,
    report             TEXT,
    report_at          BIGINT,
    inventory          TEXT,
    inventory_revision TEXT,
    inventory_at       BIGINT,
    PRIMARY KEY (tenant_id, cluster_id)
);

CREATE TABLE identities (
    identity_id TEXT PRIMARY KEY,
    tenant_id   TEXT NOT NULL,
    cluster_id  TEXT NOT NULL,
    -- SHA-256 of the client certificate: how the gateway knows the cluster.
    fingerprint TEXT NOT NULL UNIQUE,
    issued_at   BIGINT NOT NULL,
    not_after   BIGINT NOT NULL,
    revoked_at  BIGINT,
    FOREIGN KEY (tenant_id, cluster_id) REFERENCES clusters (tenant_id, cluster_id)
);

-- At most one identity of a cluster is good.
CREATE UNIQUE INDEX identities_current ON identities (tenant_id, cluster_id) WHERE revoked_at IS NULL;

CREATE TABLE commands (
    command_id       TEXT PRIMARY KEY,
    tenant_id        TEXT NOT NULL,
    cluster_id       TEXT NOT NULL,
    sequence         BIGINT NOT NULL,
    nonce            TEXT NOT NULL UNIQUE,
    operation        TEXT NOT NULL,
    -- Delivered exactly as it stands here.
    envelope         TEXT NOT NULL,
    created_at       BIGINT NOT NULL,
    created_by       TEXT NOT NULL,
    not_before       BIGINT NOT NULL,
    not_after        BIGINT NOT NULL,
    delivered_at     BIGINT,
    -- The gateway process that delivered it last.
    delivered_by     TEXT,
    deliveries       BIGINT NOT NULL,
    receipt          TEXT,
    receipt_status   TEXT,
    receipt_recorded BIGINT NOT NULL,
    receipt_at       BIGINT,
    receipts         BIGINT NOT NULL,
    UNIQUE (tenant_id, cluster_id, sequence),
    FOREIGN KEY (tenant_id, cluster_id) REFERENCES clusters (tenant_id, cluster_id)
);

CREATE INDEX commands_open ON commands (tenant_id, cluster_id, sequence) WHERE receipt_recorded = 0;

-- What agents answered, the first ones of each command.
CREATE TABLE receipts (
    receipt_id  TEXT PRIMARY KEY,
    command_id  TEXT NOT NULL REFERENCES commands (command_id),
    received_at BIGINT NOT NULL,
    identity_id TEXT NOT NULL,
    body        TEXT NOT NULL
);

CREATE INDEX receipts_of_command ON receipts (command_id, receipt_id);

-- The processes that deliver. Each holds a lock on its file in the data folder while it lives.
CREATE TABLE gateways (
    gateway_id TEXT PRIMARY KEY,
    started_at BIGINT NOT NULL
);

CREATE TABLE audit (
    audit_id   TEXT PRIMARY KEY,
    at         BIGINT NOT NULL,
    -- A refusal that is repeated within a minute is counted here instead of written anew.
    last_at    BIGINT NOT NULL,
    times      BIGINT NOT NULL,
    tenant_id  TEXT,
    cluster_id TEXT,
    actor      TEXT NOT NULL,
    action     TEXT NOT NULL,
    outcome    TEXT NOT NULL,
    subject    TEXT NOT NULL,
    detail     TEXT NOT NULL
);

CREATE INDEX audit_of_tenant ON audit (tenant_id, audit_id);
CREATE INDEX audit_of_actor ON audit (actor, last_at);
