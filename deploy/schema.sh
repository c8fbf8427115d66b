#!/bin/sh
# Bring Temporal's two databases to the schema of this admin-tools image. To be run before a server of that release
# starts, first time or upgrade: `setup-schema` leaves a database alone that is further on, and `update-schema` does
# what is missing. Settings: SQL_PLUGIN, SQL_HOST, SQL_PORT, SQL_USER, SQL_PASSWORD (and SQL_TLS...), as
# temporal-sql-tool reads them.
set -eu
: "${SQL_HOST:?say where PostgreSQL is}" "${SQL_PASSWORD:?say the password of its user}"

bring() {
    echo "database $1"
    temporal-sql-tool --db "$1" setup-schema -v 0.0
    temporal-sql-tool --db "$1" update-schema -d "/etc/temporal/schema/postgresql/v12/$2/versioned"
}

bring temporal temporal
bring temporal_visibility visibility
