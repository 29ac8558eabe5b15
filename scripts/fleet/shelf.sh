# The figures of the shelf beside Clusterpedia's table on the same SQLite and on PostgreSQL.
programs=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1)
needs "$programs/initdb" python3 setpriv
# PostgreSQL refuses to run as root.
as=()
[ "$(id -u)" != 0 ] || as=(setpriv --reuid=postgres --regid=postgres --clear-groups -- env HOME=/tmp)
mkdir -p "$here/million"
chmod 755 "$dir" "$here"
chmod 777 "$here/million"
port=$(free_port)
"${as[@]}" "$programs/initdb" -A trust -U postgres -E UTF8 --locale=C -N -D "$here/million/postgres" >"$here/initdb.log" 2>&1 || fail "$(cat "$here/initdb.log")"
start postgres "${as[@]}" "$programs/postgres" -D "$here/million/postgres" -p "$port" -c listen_addresses=127.0.0.1 -c unix_socket_directories= \
    -c max_wal_size=4GB
url="host=127.0.0.1 port=$port user=postgres dbname=postgres"
eventually "$programs/pg_isready" -h 127.0.0.1 -p "$port"
million="$bin/examples/million"
"$million" fill "$here/million" "$FLEET_MEMBERS" "$FLEET_OBJECTS" --postgres "$url" | tee "$here/fill.log"
"$million" ask "$here/million" --postgres "$url" | tee "$here/ask.log"
grep -v '^|' "$here/fill.log" "$here/ask.log" --no-filename | while read -r line; do [ -z "$line" ] || checked "$line"; done
# The rows of the table: question, target, shelf, SQLite, PostgreSQL.
grep '^|' "$here/ask.log" | tail -n +3 | while IFS='|' read -r _ what target own sqlite postgres _; do
    checked "$(echo $what) (target $(echo $target) ms): shelf $(echo $own), table on SQLite $(echo $sqlite), table on PostgreSQL $(echo $postgres); p50 in ms, rows found"
done
