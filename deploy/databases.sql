-- Temporal's two databases and the store, each with an owner of its own; run by PostgreSQL's administrator.
-- Running it again changes nothing but the passwords, which are then those of the environment.
\set ON_ERROR_STOP on
\getenv temporal_password TEMPORAL_DB_PASSWORD
\getenv gatewright_password GATEWRIGHT_DB_PASSWORD

SELECT format('CREATE ROLE %I LOGIN', name)
FROM (VALUES ('temporal'), ('gatewright')) AS wanted (name)
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name)
\gexec

ALTER ROLE temporal PASSWORD :'temporal_password';
ALTER ROLE gatewright PASSWORD :'gatewright_password';

SELECT format('CREATE DATABASE %I OWNER %I', name, owner)
FROM (VALUES ('temporal', 'temporal'), ('temporal_visibility', 'temporal'), ('gatewright', 'gatewright'))
    AS wanted (name, owner)
WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = name)
\gexec

-- Whoever can write the ledger can make an effect happen twice: nobody connects to a neighbour's database.
REVOKE ALL ON DATABASE temporal, temporal_visibility, gatewright FROM PUBLIC;
