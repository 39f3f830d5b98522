-- A token that is revoked stays, so that the audit's names keep their meaning.
ALTER TABLE tokens ADD COLUMN revoked_at BIGINT;

-- The last report without what grows with the cluster: what lists and metrics are made from.
ALTER TABLE clusters ADD COLUMN summary TEXT;

-- What the manager saw with the cluster's kubeconfig, where one was given.
ALTER TABLE clusters ADD COLUMN kubernetes TEXT;

-- Where the agent of this identity calls: its port is let out by the NetworkPolicy.
ALTER TABLE identities ADD COLUMN gateway_url TEXT;
