//! Tests of PgBouncer between a store and its database.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bareboat_sessions::Port;
use bareboat_sql::{Postgres, SqlError};
use bareboat_storage::{Backend as _, WatchSpec, Write};

use super::cluster::{Cluster, shared};
use super::{object, open};

/// A running PgBouncer.
struct Pooler {
    port: u16,
    _claim: Port,
    process: Child,
    _folder: tempfile::TempDir,
}

impl Pooler {
    /// Starts PgBouncer in front of a server; `None` if it is not installed.
    fn start(cluster: &Cluster, mode: &str, size: u32) -> Option<Self> {
        let found = Command::new("pgbouncer").arg("--version").output();
        if found.is_err() {
            assert_ne!(
                std::env::var("CI").as_deref(),
                Ok("true"),
                "PgBouncer is missing: apt-get install pgbouncer"
            );
            println!("left out: PgBouncer is not installed");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let readable = Command::new("chmod").arg("755").arg(folder.path()).status();
        assert!(readable.unwrap().success());
        let claim = Port::free();
        let port = claim.number;
        let settings = format!(
            "[databases]\npostgres = host=127.0.0.1 port={} user=postgres\n\
             [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n\
             pool_mode = {mode}\ndefault_pool_size = {size}\n",
            cluster.port
        );
        let file = folder.path().join("pgbouncer.ini");
        std::fs::write(&file, settings).unwrap();
        let mut command = super::cluster::command("pgbouncer".as_ref());
        command.arg("-q").arg(&file).stderr(Stdio::null());
        let process = command.stdout(Stdio::null()).spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < deadline, "PgBouncer does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(Self {
            port,
            _claim: claim,
            process,
            _folder: folder,
        })
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn a_pooler_that_shares_sessions_is_refused() {
    let cluster = shared();
    // One connection to the database, and several.
    for size in [1, 5] {
        let Some(pooler) = Pooler::start(cluster, "transaction", size) else {
            return;
        };
        let url = cluster.url(pooler.port, "behind_transactions");
        let refused = Postgres::open(&url).unwrap_err();
        assert!(matches!(refused, SqlError::Unsafe(_)), "{refused}");
        let text = refused.to_string();
        assert!(
            text.contains("PgBouncer") && text.contains("pool_mode=transaction"),
            "{text}"
        );
        // Settings do not hold there, whatever is accepted.
        let refused = Postgres::open(&format!("{url}&unsafe=yes")).unwrap_err();
        assert!(matches!(refused, SqlError::Unsafe(_)), "{refused}");
    }
    let made = "SELECT count(*) FROM pg_namespace WHERE nspname = 'behind_transactions'";
    assert_eq!(cluster.ask(made).as_deref(), Some("0"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pooler_that_keeps_sessions_works() {
    let cluster = shared();
    let Some(pooler) = Pooler::start(cluster, "session", 20) else {
        return;
    };
    let pooled = open(&cluster.url(pooler.port, "behind_sessions"));
    let direct = open(&cluster.url(cluster.port, "behind_sessions"));
    let there = pooled.resource("core/configmaps");
    let mut watcher = there.watch(WatchSpec::all(pooled.visible())).unwrap();
    for n in 0..20 {
        let store = if n % 2 == 0 { &direct } else { &pooled };
        let resource = store.resource("core/configmaps");
        let write = Write::create(&resource, format!("k{n}"), object(n));
        let done = store.commit(write).await.unwrap();
        let events = watcher.next_batch(9).await.unwrap();
        assert_eq!(events[0].rev, done.revision);
    }
    pooled.close().await;
    direct.close().await;
    let reader = Postgres::open(&cluster.url(pooler.port, "behind_sessions")).unwrap();
    assert_eq!(reader.mark().unwrap().last, 21);
}
