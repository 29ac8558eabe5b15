//! A private PostgreSQL server in a temporary folder. It ends with the test program.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use bareboat_sessions::Port;

/// A running server.
pub(crate) struct Cluster {
    folder: tempfile::TempDir,
    pub(crate) port: u16,
    /// Reserves the port while the server is stopped, too.
    _claim: Port,
    process: std::sync::Mutex<Option<Child>>,
    /// Processes that end the server when the test program ends for any reason: a static is never dropped.
    guards: std::sync::Mutex<Vec<Child>>,
}

/// Returns the folder of the PostgreSQL programs.
fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let mut found: Vec<PathBuf> = versions
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .filter(|bin| bin.join("initdb").exists())
        .collect();
    found.sort();
    found.pop()
}

/// Returns a command that does not run as root, because PostgreSQL refuses to run as root.
pub(crate) fn command(program: &Path) -> Command {
    let root = std::fs::metadata("/proc/self").is_ok_and(|own| {
        use std::os::unix::fs::MetadataExt as _;
        own.uid() == 0
    });
    if !root {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command
        .args([
            "--reuid=postgres",
            "--regid=postgres",
            "--clear-groups",
            "--",
        ])
        .arg(program);
    command.env("HOME", "/tmp");
    command
}

impl Cluster {
    /// Creates a server with `settings`; returns `None` if PostgreSQL is not installed.
    pub(crate) fn start(settings: &[&str]) -> Option<Self> {
        let bin = programs()?;
        let folder = tempfile::tempdir().unwrap();
        run(Command::new("chmod").arg("777").arg(folder.path()));
        let data = folder.path().join("data");
        run(command(&bin.join("initdb"))
            .args([
                "-A",
                "trust",
                "-U",
                "postgres",
                "-E",
                "UTF8",
                "--locale=C",
                "-N",
                "-D",
            ])
            .arg(&data));
        let claim = Port::free();
        let cluster = Self {
            folder,
            port: claim.number,
            _claim: claim,
            process: std::sync::Mutex::new(None),
            guards: std::sync::Mutex::default(),
        };
        cluster.run(settings);
        Some(cluster)
    }

    /// Creates an asynchronous standby of this server.
    pub(crate) fn standby(&self) -> Self {
        let bin = programs().unwrap();
        let folder = tempfile::tempdir().unwrap();
        run(Command::new("chmod").arg("777").arg(folder.path()));
        run(command(&bin.join("pg_basebackup"))
            .args(["-h", "127.0.0.1", "-U", "postgres", "-R", "-X", "stream"])
            .args(["-c", "fast", "-p", &self.port.to_string(), "-D"])
            .arg(folder.path().join("data")));
        let claim = Port::free();
        let cluster = Self {
            folder,
            port: claim.number,
            _claim: claim,
            process: std::sync::Mutex::new(None),
            guards: std::sync::Mutex::default(),
        };
        cluster.run(&[]);
        cluster
    }

    /// Returns the data folder of the server.
    #[allow(dead_code, reason = "not every suite changes its files")]
    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Starts the server process. It can be called again after the process ended.
    pub(crate) fn run(&self, settings: &[&str]) {
        self.spawn(settings);
        let deadline = Instant::now() + Duration::from_secs(60);
        while self.ask("SELECT 1").is_none() {
            assert!(Instant::now() < deadline, "the server does not start");
            // It ends at once while children of a killed server still run.
            if self.has_ended() {
                self.spawn(settings);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn has_ended(&self) -> bool {
        let mut process = self.process.lock().unwrap();
        let process = process.as_mut();
        process.is_some_and(|process| process.try_wait().unwrap().is_some())
    }

    fn spawn(&self, settings: &[&str]) {
        let bin = programs().unwrap();
        let mut server = command(&bin.join("postgres"));
        server
            .arg("-D")
            .arg(self.folder.path().join("data"))
            .args(["-p", &self.port.to_string()])
            .args([
                "-c",
                "listen_addresses=127.0.0.1",
                "-c",
                "unix_socket_directories=",
            ])
            .args(["-c", "shared_buffers=32MB", "-c", "max_connections=200"]);
        for setting in settings {
            server.args(["-c", setting]);
        }
        let log = std::fs::File::create(self.folder.path().join("log")).unwrap();
        server.stdout(Stdio::null()).stderr(log);
        let process = server.spawn().unwrap();
        // The standard input of the guard ends with the test program.
        let guard = format!(
            "read _; kill -QUIT {} 2>/dev/null; sleep 1; rm -rf '{}'",
            process.id(),
            self.folder.path().display()
        );
        let mut shell = Command::new("sh");
        shell.args(["-c", &guard]).stdin(Stdio::piped());
        self.guards.lock().unwrap().push(shell.spawn().unwrap());
        *self.process.lock().unwrap() = Some(process);
    }

    /// Returns the ID of the running process.
    #[allow(dead_code, reason = "not every suite stops the process")]
    pub(crate) fn pid(&self) -> u32 {
        self.process.lock().unwrap().as_ref().unwrap().id()
    }

    /// Kills the process and its children. Their memory is lost, as in a power failure.
    pub(crate) fn kill(&self) {
        if let Some(mut process) = self.process.lock().unwrap().take() {
            let children = format!("/proc/{0}/task/{0}/children", process.id());
            let children = std::fs::read_to_string(children).unwrap_or_default();
            let _ = process.kill();
            let _ = process.wait();
            // Without a signal, one that is busy would answer once more.
            let mut kill = Command::new("kill");
            let kill = kill.arg("-KILL").args(children.split_whitespace());
            let _ = kill.stderr(Stdio::null()).status();
        }
    }

    /// Runs `statement` as the administrator; returns the first column of the first row.
    pub(crate) fn ask(&self, statement: &str) -> Option<String> {
        let output = self.psql(statement).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        output.status.success().then_some(text)
    }

    /// Returns a command that runs `statement` as the administrator.
    pub(crate) fn psql(&self, statement: &str) -> Command {
        let mut psql = Command::new(programs().unwrap().join("psql"));
        psql.args(["-h", "127.0.0.1", "-U", "postgres", "-d", "postgres"])
            .args(["-p", &self.port.to_string(), "-AtqX", "-c", statement]);
        psql
    }

    /// Returns the address of a schema that no other test uses.
    pub(crate) fn fresh(&self) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let schema = format!("t{}", NEXT.fetch_add(1, Ordering::Relaxed));
        self.url(self.port, &schema)
    }

    /// Returns the address of `schema` at `port`.
    pub(crate) fn url(&self, port: u16, schema: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{port}/postgres?schema={schema}")
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for guard in self.guards.lock().unwrap().iter_mut() {
            drop(guard.stdin.take());
            let _ = guard.wait();
        }
        if let Some(mut process) = self.process.lock().unwrap().take() {
            let _ = process.wait();
        }
    }
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Returns the server that most tests share.
pub(crate) fn shared() -> &'static Cluster {
    static SHARED: OnceLock<Cluster> = OnceLock::new();
    SHARED.get_or_init(|| {
        // Vacuum runs as often as the tests are short.
        let cluster = Cluster::start(&["autovacuum_naptime=1s"]);
        cluster.expect("PostgreSQL is not installed: apt-get install postgresql-15")
    })
}
