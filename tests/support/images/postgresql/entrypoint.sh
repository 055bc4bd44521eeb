#!/bin/bash
# Makes the database on the first start, then becomes PostgreSQL. Takes what the official image takes:
# POSTGRES_PASSWORD, POSTGRES_USER (postgres), POSTGRES_DB (as the user), PGDATA.
set -euo pipefail

if [ "$1" != postgres ]; then exec "$@"; fi

if [ "$(id -u)" = 0 ]; then
    install -d -o postgres -g postgres -m 700 "$PGDATA"
    install -d -o postgres -g postgres -m 775 /run/postgresql
    find "$PGDATA" ! -user postgres -exec chown postgres:postgres {} +
    exec setpriv --reuid=postgres --regid=postgres --init-groups "$0" "$@"
fi
mkdir -p /run/postgresql

if [ ! -s "$PGDATA/PG_VERSION" ]; then
    if [ -z "${POSTGRES_PASSWORD:-}" ]; then
        echo 'There is no database yet, and no password for its owner: set POSTGRES_PASSWORD.' >&2
        exit 1
    fi
    user=${POSTGRES_USER:-postgres} database=${POSTGRES_DB:-${POSTGRES_USER:-postgres}}

    # It becomes a database at once, by its version file: a first start that is cut off starts over.
    new=$PGDATA/.new
    if [ -d "$new" ]; then find "$PGDATA" -mindepth 1 -delete; fi
    mkdir -m 700 "$new"
    initdb --pgdata="$new" --username="$user" --pwfile=<(echo "$POSTGRES_PASSWORD") --encoding=UTF8 --locale=C.UTF-8 \
        --auth-local=trust --auth-host=scram-sha-256 --no-instructions
    echo 'host all all all scram-sha-256' >> "$new/pg_hba.conf"
    printf '%s\n' "listen_addresses = '*'" 'shared_buffers = 32MB' 'jit = off' >> "$new/postgresql.conf"
    if [ "$database" != postgres ]; then
        # Without a server: nothing listens before all is done.
        echo "CREATE DATABASE \"${database//\"/\"\"}\"" | postgres --single -D "$new" postgres >/dev/null
    fi
    find "$new" -mindepth 1 -maxdepth 1 ! -name PG_VERSION -exec mv -t "$PGDATA" {} +
    mv "$new/PG_VERSION" "$PGDATA"
fi
if [ -d "$PGDATA/.new" ]; then rmdir "$PGDATA/.new"; fi

exec "$@"
