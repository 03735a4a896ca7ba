#!/bin/sh
# Runs once, when the database is made: the application's role and its password.
set -eu
psql -v ON_ERROR_STOP=1 -U "$POSTGRES_USER" -d "$POSTGRES_DB" -f /roles/app-role.sql
psql -v ON_ERROR_STOP=1 -U "$POSTGRES_USER" -d "$POSTGRES_DB" -v password="$APP_PASSWORD" <<'SQL'
ALTER ROLE harnesslab_app PASSWORD :'password';
SQL
