#!/bin/sh
# Roles for `sopilot store migrate --runtime runner --auditor auditor --keeper keeper`.
set -e
psql -v ON_ERROR_STOP=1 -v runner="$RUNNER_PASSWORD" -v auditor="$AUDITOR_PASSWORD" \
  --username "${POSTGRES_USER:-postgres}" --dbname "${POSTGRES_DB:-sopilot}" <<'SQL'
CREATE ROLE runner LOGIN PASSWORD :'runner';
CREATE ROLE auditor LOGIN PASSWORD :'auditor';
CREATE ROLE keeper NOLOGIN;
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
SQL
