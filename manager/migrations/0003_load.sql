-- When agents were last heard: written all the time, so not in the rows of clusters, which are large.
CREATE TABLE contacts (
    tenant_id  TEXT NOT NULL,
    cluster_id TEXT NOT NULL,
    contact_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, cluster_id)
);

INSERT INTO contacts (tenant_id, cluster_id, contact_at)
SELECT tenant_id, cluster_id, contact_at FROM clusters WHERE contact_at IS NOT NULL;

ALTER TABLE clusters DROP COLUMN contact_at;

-- What a gateway looks through every second: the commands that may still be delivered, and who was
-- revoked of late.
CREATE INDEX commands_live ON commands (not_after) WHERE receipt_recorded = 0;
CREATE INDEX identities_revoked ON identities (revoked_at) WHERE revoked_at IS NOT NULL;
